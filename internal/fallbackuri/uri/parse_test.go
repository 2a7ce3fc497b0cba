package uri

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// document are the examples that the design of fallback URIs gives.
var document = map[string][]string{
	"fallback://?u=https%3A%2F%2Fcdn.example.com%2Ffoo&u=drive%3A%2F%2Fprimary%2Ffoo": {
		"https://cdn.example.com/foo", "drive://primary/foo",
	},
	"fallback://?u=file%3A%2F%2F%2Ftmp%2Ffixtures%2Fa.json&u=https%3A%2F%2Ffixtures.test%2Fa.json": {
		"file:///tmp/fixtures/a.json", "https://fixtures.test/a.json",
	},
	"fallback://?u=cache%3A%2F%2Flocal%2Favatars%2Falice.jpg&u=cdn%3A%2F%2Fzone-eu%2Favatars%2Falice.jpg&u=drive%3A%2F%2Fprimary%2Favatars%2Falice.jpg": {
		"cache://local/avatars/alice.jpg", "cdn://zone-eu/avatars/alice.jpg", "drive://primary/avatars/alice.jpg",
	},
}

func TestExamplesOfTheDocumentAreReadAndWrittenAsTheyStand(t *testing.T) {
	for text, candidates := range document {
		u, err := Parse(text, 0)
		if err != nil || !slices.Equal(u.Candidates(), candidates) || u.String() != text {
			t.Errorf("%s: got %q, %v, written as %s", text, u.Candidates(), err, u)
		}
		built, err := Build(candidates, 0)
		if err != nil || built.String() != text {
			t.Errorf("built %s, %v, want %s", built, err, text)
		}
	}
}

func TestOneURIMayBeSpeltInSeveralWays(t *testing.T) {
	const want = "fallback://?u=https%3A%2F%2Fa%2Fx&u=b%3Ac"
	for _, text := range []string{
		want, "fallback:///?u=https%3A%2F%2Fa%2Fx&u=b%3Ac", "FALLBACK://?u=https%3A%2F%2Fa%2Fx&u=b%3Ac",
		"fallback://?u=https%3a%2f%2fa%2fx&u=b:c", "fallback://?u=https://a/x&u=b:c#fragment",
	} {
		if u, err := Parse(text, 0); err != nil || u.String() != want {
			t.Errorf("%s: got %s, %v", text, u, err)
		}
	}
}

func TestWhatBreaksTheGrammarIsRefusedWithItsCode(t *testing.T) {
	many := "fallback://?u=a:b" + strings.Repeat("&u=a:b", 16)
	for name, tc := range map[string]struct {
		text   string
		code   Code
		reason string
	}{
		"no candidate":              {"fallback://", CodeNoCandidates, "at least one"},
		"no candidate, with a path": {"fallback:///", CodeNoCandidates, "at least one"},
		"an empty query":            {"fallback://?", CodeNoCandidates, "at least one"},
		"only a fragment":           {"fallback://#u=a:b", CodeNoCandidates, "at least one"},
		"nothing":                   {"", CodeInvalidURI, "begin with fallback://"},
		"another scheme":            {"https://a/?u=a:b", CodeInvalidURI, "begin with fallback://"},
		"no scheme":                 {"//?u=a:b", CodeInvalidURI, "begin with fallback://"},
		"no slashes":                {"fallback:?u=a:b", CodeInvalidURI, "two slashes"},
		"an authority":              {"fallback://host?u=a:b", CodeInvalidURI, "authority must be empty"},
		"a port":                    {"fallback://:80/?u=a:b", CodeInvalidURI, "authority must be empty"},
		"a path":                    {"fallback:///path?u=a:b", CodeInvalidURI, "path must be empty"},
		"an empty candidate":        {"fallback://?u=a:b&u=", CodeInvalidURI, "candidate 2: it is empty"},
		"a candidate without value": {"fallback://?u", CodeInvalidURI, "it is empty"},
		"a relative candidate":      {"fallback://?u=%2Fetc", CodeInvalidURI, "complete URI"},
		"a scheme with a digit":     {"fallback://?u=1a%3Ab", CodeInvalidURI, "complete URI"},
		"another parameter":         {"fallback://?u=a:b&v=c", CodeInvalidURI, "must be u="},
		"a pair of ampersands":      {"fallback://?u=a:b&&u=c:d", CodeInvalidURI, "must be u="},
		"an unencoded query":        {"fallback://?u=https://a/?x=1&y=2", CodeInvalidURI, "percent-encoded"},
		"half an escape":            {"fallback://?u=a:%2", CodeInvalidURI, "two hexadecimal digits"},
		"a space":                   {"fallback://?u=a: b", CodeInvalidURI, "percent-encode it"},
		"a plus, which is a space":  {"fallback://?u=a:+b", CodeInvalidURI, "percent-encode it twice"},
		"a line break":              {"fallback://?u=a:%0Ab", CodeInvalidURI, "percent-encode it twice"},
		"a letter beyond ASCII":     {"fallback://?u=a:ä", CodeInvalidURI, "percent-encode it"},
		"too many candidates":       {many, CodeInvalidURI, "more than 16 candidates"},
		"a candidate too long":      {"fallback://?u=a:" + strings.Repeat("x", 4095), CodeInvalidURI, "at most 4096"},
		"far too long":              {"fallback://?u=a:" + strings.Repeat("x", 1<<20), CodeInvalidURI, "can take"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tc.text, 0)
			var e *Error
			if !errors.As(err, &e) || e.Code != tc.code || !strings.Contains(e.Reason, tc.reason) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestLimitsHoldToTheCharacterAndTheCandidate(t *testing.T) {
	longest := "a:" + strings.Repeat("%", MaxCandidateLength-2)
	for limit, n := range map[int]int{0: DefaultMaxCandidates, 1: 1, MaxCandidates: MaxCandidates} {
		u, err := Build(slices.Repeat([]string{longest}, n), limit)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := Parse(u.String(), limit); err != nil || len(back.Candidates()) != n {
			t.Fatalf("limit %d: got %d candidates, %v", limit, len(back.Candidates()), err)
		}
		if _, err := Build(slices.Repeat([]string{"a:b"}, n+1), limit); err == nil {
			t.Fatalf("limit %d takes %d", limit, n+1)
		}
	}
	for _, limit := range []int{-1, MaxCandidates + 1} {
		if _, err := Parse("fallback://?u=a:b", limit); err == nil {
			t.Errorf("the limit %d is taken", limit)
		}
	}
}

func TestBuildRefusesWhatParseWould(t *testing.T) {
	for name, tc := range map[string]struct {
		candidates []string
		code       Code
	}{
		"nothing":    {nil, CodeNoCandidates},
		"an empty":   {[]string{"a:b", ""}, CodeInvalidURI},
		"a space":    {[]string{"a: b"}, CodeInvalidURI},
		"a relative": {[]string{"../x"}, CodeInvalidURI},
		"too long":   {[]string{"a:" + strings.Repeat("x", 4095)}, CodeInvalidURI},
	} {
		var e *Error
		if _, err := Build(tc.candidates, 0); !errors.As(err, &e) || e.Code != tc.code {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestCandidatesCannotBeChangedThroughACopy(t *testing.T) {
	given := []string{"a:b", "c:d"}
	u, err := Build(given, 0)
	if err != nil {
		t.Fatal(err)
	}
	given[0], u.Candidates()[1] = "x:y", "x:y"
	if u.String() != "fallback://?u=a%3Ab&u=c%3Ad" {
		t.Fatalf("got %s", u)
	}
}

func TestCanonicalFormsOfOneSetAreEqual(t *testing.T) {
	for _, same := range [][]string{
		{"fallback://?u=a:1&u=b:2", "fallback://?u=b:2&u=a:1", "FALLBACK:///?u=b%3A2&u=A%3A1#x"},
		{"https://Host/Path", "HTTPS://Host/Path#top"},
		{
			"fallback://?u=a:1&u=fallback%3A%2F%2F%3Fu%3Db%3A2%26u%3Dc%3A3",
			"fallback://?u=FALLBACK%3A%2F%2F%2F%3Fu%3Dc%3A3%26u%3Db%3A2&u=a:1",
		},
	} {
		for _, text := range same {
			if Canonical(text) != Canonical(same[0]) || Canonical(Canonical(text)) != Canonical(text) {
				t.Errorf("%s becomes %s, %s becomes %s", same[0], Canonical(same[0]), text, Canonical(text))
			}
		}
	}
	if Canonical("https://host/A") == Canonical("https://host/a") || Canonical("a:b?x") == Canonical("a:b?y") {
		t.Error("two different URIs became one")
	}
}

func TestRedactLeavesNoCredentialInAnything(t *testing.T) {
	const secret = "s3cr3t"
	for text, want := range map[string]string{
		"https://user:s3cr3t@host:8080/path":     "https://redacted@host:8080/path",
		"https://host/path?X-Amz-Signature=s3cr": "https://host/path?redacted",
		"https://host/path?s3cr3t#s3cr3t":        "https://host/path?redacted",
		"https://host/@scope/pkg":                "https://host/@scope/pkg",
		"https://[::1]:80/x":                     "https://[::1]:80/x",
		"https://user:s3cr3t/@host/x":            "https://redacted",
		`https://user:s3cr3t\@host/x`:            "https://redacted",
		"mailto:s3cr3t@host":                     "mailto:redacted@host",
		"https:/s3cr3t@host/x":                   "https:redacted@host/x",
		"user:s3cr3t@host":                       "user:redacted@host",
		"s3cr3t":                                 "redacted",
		"":                                       "redacted",
		"fallback://s3cr3t":                      "fallback://redacted",
		"fallback://?u=https://a?b&sig=s3cr3t":   "fallback://redacted",
		"a:b\nc\x7f":                             "a:b?c?",
	} {
		if got := Redact(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	inner := write([]string{"https://u:s3cr3t@deep/", "https://deep/?s3cr3t"})
	outer := write([]string{inner, "https://u:s3cr3t@host/"})
	got := Redact(outer)
	if strings.Contains(got, secret) || !strings.Contains(got, "host") || !strings.Contains(got, "deep") {
		t.Errorf("got %s", got)
	}
	for _, text := range []string{outer[:len(outer)-1] + "%", outer + "&token=s3cr3t", "FALLBACK://u:s3cr3t@" + outer} {
		_, err := Parse(text, 0)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestLocateSplitsNamesFromKeys(t *testing.T) {
	for text, want := range map[string]Location{
		"backend://primary":            {"backend", "primary", ""},
		"backend://primary/":           {"backend", "primary", ""},
		"BACKEND://primary/a/b%20c":    {"backend", "primary", "a/b c"},
		"mux://assets/a":               {"mux", "assets", "a"},
		"s3://bucket.name/deep//er/":   {"s3", "bucket.name", "deep//er/"},
		"file:///var/data%2Fx":         {"file", "", "var/data/x"},
		"backend://name/with@sign:and": {"backend", "name", "with@sign:and"},
	} {
		if got, err := Locate(text); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"backend:name", "backend:/name", "name", "backend://a?b", "backend://a#b", "backend://u@a/", "backend://a:1/", "backend://a%2Fb/", "backend://a/%",
	} {
		var e *Error
		if _, err := Locate(text); !errors.As(err, &e) || e.Code != CodeInvalidURI {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestLeavesAreFoundAtEveryDepthInTheOrderOfAWalk(t *testing.T) {
	nest := func(candidates ...string) string { return write(candidates) }
	u, err := Parse(nest("a:1", nest("b:2", nest("c:3")), "d:4"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := u.Leaves(0, 3); err != nil || !slices.Equal(got, []string{"a:1", "b:2", "c:3", "d:4"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := u.Leaves(0, 2); err == nil || !strings.Contains(err.Error(), "more than 2 deep") {
		t.Errorf("got %v", err)
	}
	if u, _ := Parse("fallback://?u=fallback%3A%2F%2F", 0); len(u.candidates) != 1 {
		t.Error("a candidate is read before it is looked at")
	} else if _, err := u.Leaves(0, 0); err == nil {
		t.Error("a nested URI without candidates is taken")
	}
	wide, _ := Parse(nest(nest("a:1", "b:2", "c:3")), 0)
	if _, err := wide.Leaves(2, 0); err == nil {
		t.Error("a nested URI with too many candidates is taken")
	}
}

func FuzzParse(f *testing.F) {
	for text := range document {
		f.Add(text)
	}
	f.Add("fallback:///?u=a:b#c")
	f.Add("fallback://?u=https://user:pw@h/?q=1&u=%zz")
	f.Add(write([]string{write([]string{"a:b"})}))
	f.Fuzz(func(t *testing.T, text string) {
		u, err := Parse(text, MaxCandidates)
		Redact(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeInvalidURI && e.Code != CodeNoCandidates || e.Reason == "" {
				t.Fatalf("got %v", err)
			}
			return
		}
		again, err := Parse(u.String(), MaxCandidates)
		if err != nil || again.String() != u.String() || !slices.Equal(again.candidates, u.candidates) {
			t.Fatalf("%q becomes %s, which becomes %s, %v", text, u, again, err)
		}
		if c := Canonical(text); c != Canonical(u.String()) || Canonical(c) != c {
			t.Fatalf("%q has the canonical forms %s and %s", text, c, Canonical(u.String()))
		}
		if _, err := u.Leaves(MaxCandidates, MaxDepth); err == nil {
			for _, c := range u.candidates {
				_, _ = Locate(c)
			}
		}
	})
}

func FuzzBuildThenParse(f *testing.F) {
	f.Add("https://a/?x=1&y=2#z", "backend://b/c d", "fallback://?u=a%3Ab")
	f.Add("a:+%20&=", "", "x")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		given := []string{a, b, c}
		u, err := Build(given, 0)
		if err != nil {
			return
		}
		back, err := Parse(u.String(), 0)
		if err != nil || !slices.Equal(back.Candidates(), given) {
			t.Fatalf("%q came back as %q, %v", given, back.Candidates(), err)
		}
		// The standard's own parser sees the same list.
		std, err := url.Parse(u.String())
		if err != nil || !slices.Equal(std.Query()["u"], given) {
			t.Fatalf("net/url reads %q, %v", std.Query()["u"], err)
		}
	})
}

func FuzzRedact(f *testing.F) {
	f.Add("https", "user", "pass", "host/path")
	f.Fuzz(func(t *testing.T, scheme, user, password, rest string) {
		const secret = "zq7secretzq7"
		text := scheme + "://" + user + ":" + password + secret + "@" + rest
		if strings.ContainsAny(password, `/\?#`) || strings.ContainsAny(user, `/\?#`) || !isURI(text) {
			return
		}
		for _, redacted := range []string{Redact(text), Redact(write([]string{text})), Redact("https://h/?q=" + secret)} {
			if strings.Contains(redacted, secret) {
				t.Fatalf("%q is shown as %q", text, redacted)
			}
		}
	})
}

func isURI(text string) bool { return check(text) == "" }

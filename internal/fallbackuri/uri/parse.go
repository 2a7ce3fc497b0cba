package uri

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

const (
	// Scheme is the scheme of fallback URIs, in lower case.
	Scheme = "fallback"
	// DefaultMaxCandidates is how many candidates a URI may have where no
	// policy says otherwise.
	DefaultMaxCandidates = 16
	// MaxCandidates is the most that any policy may allow.
	MaxCandidates = 64
	// MaxCandidateLength is the most characters of one candidate, decoded.
	MaxCandidateLength = 4096
	// DefaultMaxDepth is how deep fallback URIs may be nested where no policy
	// says otherwise.
	DefaultMaxDepth = 4
	// MaxDepth is the deepest that any policy may allow.
	MaxDepth = 8
)

// URI is a fallback URI: at least one candidate, in order. Two URIs that differ
// only in their spelling are the same URI.
type URI struct{ candidates []string }

// Candidates returns the candidates in order, decoded. The caller may keep it.
func (u URI) Candidates() []string { return slices.Clone(u.candidates) }

// String returns the canonical form, fallback://?u=FIRST&u=SECOND.
func (u URI) String() string { return write(u.candidates) }

// Parse reads a fallback URI of at most maxCandidates candidates; 0 stands for
// DefaultMaxCandidates, and more than MaxCandidates are never taken. It accepts
// fallback://?u=... and fallback:///?u=... and ignores a fragment. Its errors
// are *Error.
func Parse(text string, maxCandidates int) (URI, error) {
	limit, err := limitOf(maxCandidates)
	if err != nil {
		return URI{}, err
	}
	query, err := queryOf(text, limit)
	if err != nil {
		return URI{}, err
	}
	var candidates []string
	for pair := range strings.SplitSeq(query, "&") {
		if len(candidates) == limit {
			return URI{}, tooMany(text, limit)
		}
		candidate, reason := valueOf(pair)
		if reason != "" {
			return URI{}, invalid(text, "candidate %d: %s", len(candidates)+1, reason)
		}
		candidates = append(candidates, candidate)
	}
	return URI{candidates}, nil
}

// Build makes a fallback URI of complete URIs, under Parse's rules.
func Build(candidates []string, maxCandidates int) (URI, error) {
	limit, err := limitOf(maxCandidates)
	switch {
	case err != nil:
		return URI{}, err
	case len(candidates) == 0:
		return URI{}, &Error{Code: CodeNoCandidates, Reason: "a fallback URI needs at least one candidate"}
	case len(candidates) > limit:
		return URI{}, tooMany("", limit)
	}
	for i, c := range candidates {
		if reason := check(c); reason != "" {
			return URI{}, &Error{Code: CodeInvalidURI, URI: Redact(c), Reason: fmt.Sprintf("candidate %d: %s", i+1, reason)}
		}
	}
	return URI{slices.Clone(candidates)}, nil
}

// limitOf returns how many candidates are allowed.
func limitOf(maxCandidates int) (int, error) {
	switch {
	case maxCandidates == 0:
		return DefaultMaxCandidates, nil
	case maxCandidates < 0 || maxCandidates > MaxCandidates:
		return 0, &Error{Code: CodeInvalidURI, Reason: fmt.Sprintf("the limit of candidates is %d and must be 1 to %d", maxCandidates, MaxCandidates)}
	}
	return maxCandidates, nil
}

// queryOf returns what follows the question mark of a URI with limit candidates
// at most.
func queryOf(text string, limit int) (string, error) {
	if len(text) > (limit+1)*(3*MaxCandidateLength+len("&u=")) {
		return "", invalid(text, "it has %d characters, more than %d candidates of %d characters can take", len(text), limit, MaxCandidateLength)
	}
	if at := strings.IndexFunc(text, notInURI); at >= 0 {
		return "", invalid(text, "character %d is not one that a URI may have; percent-encode it", at+1)
	}
	rest, _, _ := strings.Cut(text, "#")
	scheme, rest, found := strings.Cut(rest, ":")
	switch {
	case !found || !strings.EqualFold(scheme, Scheme):
		return "", invalid(text, "it must begin with %s://", Scheme)
	case !strings.HasPrefix(rest, "//"):
		return "", invalid(text, "two slashes must follow the scheme")
	}
	hierarchy, query, _ := strings.Cut(rest[len("//"):], "?")
	authority, path, _ := strings.Cut(hierarchy, "/")
	switch {
	case authority != "":
		return "", invalid(text, "the authority must be empty: candidates are given as u=")
	case path != "":
		return "", invalid(text, "the path must be empty: candidates are given as u=")
	case query == "":
		return "", &Error{Code: CodeNoCandidates, URI: Redact(text), Reason: "a fallback URI needs at least one candidate"}
	}
	return query, nil
}

// valueOf returns the candidate of one u=..., or what is wrong with it.
func valueOf(pair string) (candidate, reason string) {
	name, value, _ := strings.Cut(pair, "=")
	if name != "u" {
		return "", "every parameter must be u=, with the candidate's own & and = percent-encoded"
	}
	candidate, err := url.QueryUnescape(value)
	if err != nil {
		return "", "a percent sign must be followed by two hexadecimal digits"
	}
	return candidate, check(candidate)
}

// check returns what keeps candidate from being one, or "".
func check(candidate string) string {
	if candidate == "" {
		return "it is empty"
	}
	if len(candidate) > MaxCandidateLength {
		return fmt.Sprintf("it has %d characters and must have at most %d", len(candidate), MaxCandidateLength)
	}
	if strings.ContainsFunc(candidate, notInURI) {
		return "it has a character that a URI may not have; percent-encode it twice"
	}
	if SchemeOf(candidate) == "" {
		return "it must be a complete URI that begins with a scheme"
	}
	return ""
}

// notInURI reports whether r may not occur in a URI: anything but printable
// ASCII.
func notInURI(r rune) bool { return r <= ' ' || r > '~' }

func write(candidates []string) string {
	var b strings.Builder
	b.WriteString(Scheme + "://")
	for i, c := range candidates {
		if i == 0 {
			b.WriteString("?u=")
		} else {
			b.WriteString("&u=")
		}
		b.WriteString(url.QueryEscape(c))
	}
	return b.String()
}

func invalid(text, format string, args ...any) error {
	return &Error{Code: CodeInvalidURI, URI: Redact(text), Reason: fmt.Sprintf(format, args...)}
}

func tooMany(text string, limit int) error {
	e := &Error{Code: CodeInvalidURI, Reason: fmt.Sprintf("it has more than %d candidates", limit)}
	if text != "" {
		e.URI = Redact(text)
	}
	return e
}

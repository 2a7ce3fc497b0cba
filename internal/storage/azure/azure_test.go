package azure

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

func TestAnswersOfTheServiceGetTheirCodes(t *testing.T) {
	for _, tt := range []struct {
		status int
		code   string
		want   storage.Code
	}{
		{404, "BlobNotFound", storage.CodeKeyNotFound},
		{404, "ContainerNotFound", storage.CodeBucketNotFound},
		{409, "BlobAlreadyExists", storage.CodePreconditionFailed},
		{412, "ConditionNotMet", storage.CodePreconditionFailed},
		{412, "LeaseIdMissing", storage.CodeRejected},
		{400, "InvalidBlockList", storage.CodeUnavailable},
		{400, "Md5Mismatch", storage.CodeUnavailable},
		{400, "SomethingElse", storage.CodeRejected},
		{403, "AuthenticationFailed", storage.CodeAccessDenied},
		{408, "", storage.CodeUnavailable},
		{413, "RequestBodyTooLarge", storage.CodeTooLarge},
		{429, "", storage.CodeThrottled},
		{500, "InternalError", storage.CodeUnavailable},
		{501, "", storage.CodeUnsupported},
		{503, "ServerBusy", storage.CodeThrottled},
		{507, "", storage.CodeNoSpace},
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if tt.code != "" {
				w.Header().Set("X-Ms-Error-Code", tt.code)
			}
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(tt.status)
		}))
		s, err := New(Config{Endpoint: server.URL, Container: "container"})
		if err != nil {
			t.Fatal(err)
		}
		_, serr := s.Stat(t.Context(), "key", storage.StatOptions{})
		_, gerr := s.GetStream(t.Context(), "key", storage.GetOptions{})
		_, perr := storage.Set(t.Context(), s, "key", []byte("x"), storage.SetOptions{})
		_, lerr := s.List(t.Context(), storage.ListOptions{})
		for _, err := range []error{serr, gerr, perr, lerr} {
			var e *storage.Error
			if !errors.As(err, &e) || e.Code != tt.want || e.Status != tt.status || e.RetryAfter != 3*time.Second {
				t.Errorf("%d %s: %v, want %s", tt.status, tt.code, err, tt.want)
			}
		}
		if asked != 4 {
			t.Errorf("%d %s: %d requests for four operations", tt.status, tt.code, asked)
		}
		s.Close()
		server.Close()
	}
}

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	for _, cfg := range []Config{
		{Endpoint: "ftp://host", Container: "c"},
		{Endpoint: "https://host/?x=y", Container: "c"},
		{Endpoint: "https://host"},
		{Endpoint: "https://host", Container: "c", Auth: Auth{Type: Key, Account: "a", Key: "no base64!"}},
		{Endpoint: "https://host", Container: "c", Auth: Auth{Type: Key, Key: "a2V5"}},
		{Endpoint: "https://host", Container: "c", Auth: Auth{Type: SAS}},
	} {
		if _, err := New(cfg); storage.CodeOf(err) != storage.CodeRejected {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestWhatTheServiceWouldTakeForAnotherNameIsRefused(t *testing.T) {
	s := &Storage{prefix: "prefix/"}
	for _, key := range []string{"a.", "a./b", ".", "..", "a/../b", `a\b`, "tab\t", "\u0085", "\ufffe", strings.Repeat("k", 1020), strings.Repeat("d/", 254) + "x"} {
		if err := s.named("SetStream", key); storage.CodeOf(err) != storage.CodeInvalidKey {
			t.Errorf("%.40q: %v", key, err)
		}
	}
	for _, key := range []string{"a.txt", ".hidden", "a//b", "/a", "a/", "ü%20+ &?#", strings.Repeat("d/", 200) + "x"} {
		if err := s.named("SetStream", key); err != nil {
			t.Errorf("%.40q: %v", key, err)
		}
	}
}

func TestAListingGoesOnFromTheLatestKnownPlace(t *testing.T) {
	var m markers
	flat, folded := listing{"", ""}, listing{"", "/"}
	m.keep(flat, "b", "after b")
	m.keep(flat, "f", "after f")
	m.keep(flat, "d", "after d")
	m.keep(folded, "e/", "after e/")
	for after, want := range map[string]string{"": "", "a": "", "b": "after b", "c": "after b", "d": "after d", "e": "after d", "z": "after f"} {
		if got, _ := m.before(flat, after); got != want {
			t.Errorf("after %q it goes on %q, want %q", after, got, want)
		}
	}
	m.keep(flat, "b", "again after b")
	if got, _ := m.before(flat, "c"); got != "again after b" {
		t.Errorf("a place found again has the marker %q", got)
	}
	for i := range 2 * maxMarkers {
		m.keep(flat, fmt.Sprintf("x%04d", i), "later")
	}
	if len(m.places) != maxMarkers {
		t.Errorf("%d places are remembered", len(m.places))
	}
}

func TestTheEndOfASignatureIsRead(t *testing.T) {
	for token, want := range map[string]time.Time{
		"?sv=2026&se=2026-11-30T19%3A00%3A00Z&sig=x": time.Date(2026, 11, 30, 19, 0, 0, 0, time.UTC),
		"se=2026-11-30T19:00Z":                       time.Date(2026, 11, 30, 19, 0, 0, 0, time.UTC),
		"se=2026-11-30":                              time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		"sig=x":                                      {},
	} {
		if got := (Auth{SASToken: token}).expiry(); !got.Equal(want) {
			t.Errorf("%s ends at %s, want %s", token, got, want)
		}
	}
}

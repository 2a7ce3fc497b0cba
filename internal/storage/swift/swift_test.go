package swift

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// fake is an identity service of version 1 and an account, of which only what
// the tests ask for is there.
type fake struct {
	*httptest.Server
	tokens  atomic.Int32 // given so far; only the latest is valid
	objects http.HandlerFunc
}

func newFake(t testing.TB, objects http.HandlerFunc) *fake {
	t.Helper()
	f := &fake{objects: objects}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/auth/v1.0") && r.Header.Get("X-Auth-Key") == "password":
			w.Header().Set("X-Auth-Token", fmt.Sprint("token-", f.tokens.Add(1)))
			w.Header().Set("X-Storage-Url", f.URL+"/v1/account")
		case r.Header.Get("X-Auth-Token") == fmt.Sprint("token-", f.tokens.Load()):
			f.objects(w, r)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) open(t testing.TB, password string) *Storage {
	t.Helper()
	s, err := New(Config{AuthURL: f.URL + "/auth/v1.0", Container: "container", Auth: Auth{Username: "user", Password: password}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestATokenThatHasRunOutIsReplacedOnce(t *testing.T) {
	var got []string
	f := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+string(body))
		w.WriteHeader(http.StatusCreated)
	})
	s := f.open(t, "password")
	for _, size := range []int64{5, -1} {
		f.tokens.Add(1) // that which the store holds is not valid any more
		if _, err := s.SetStream(t.Context(), "key", storage.Stream(strings.NewReader("small"), size), storage.SetOptions{}); err != nil {
			t.Errorf("a small body: %v", err)
		}
	}
	large := strings.Repeat("x", smallBody+1)
	f.tokens.Add(1)
	if _, err := s.SetStream(t.Context(), "key", storage.Stream(strings.NewReader(large), smallBody+1), storage.SetOptions{}); err != nil {
		t.Errorf("a large body, which the server did not ask for yet: %v", err)
	}
	f.tokens.Add(1)
	if err := s.Delete(t.Context(), "key"); err != nil {
		t.Errorf("delete: %v", err)
	}
	if len(got) != 4 || got[0] != "PUT small" || got[1] != "PUT small" || got[2] != "PUT "+large || got[3] != "DELETE " {
		t.Errorf("the server got %.40q", got)
	}
}

func TestCallersShareANewToken(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	s := f.open(t, "password")
	errs := make(chan error, 20)
	for range cap(errs) {
		go func() { errs <- s.Delete(t.Context(), "key") }()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := f.tokens.Load(); n != 1 {
		t.Errorf("%d tokens were asked for", n)
	}
}

func TestAWrongPasswordIsDenied(t *testing.T) {
	f := newFake(t, nil)
	s := f.open(t, "wrong")
	if _, err := s.Stat(t.Context(), "key", storage.StatOptions{}); storage.CodeOf(err) != storage.CodeAccessDenied {
		t.Errorf("stat: %v", err)
	}
}

func TestAnswersOfTheServerGetTheirCodes(t *testing.T) {
	for status, want := range map[int]storage.Code{
		400: storage.CodeRejected, 403: storage.CodeAccessDenied, 408: storage.CodeUnavailable, 413: storage.CodeTooLarge,
		422: storage.CodeUnavailable, 429: storage.CodeThrottled, 498: storage.CodeThrottled, 500: storage.CodeUnavailable,
		501: storage.CodeUnsupported, 503: storage.CodeUnavailable, 507: storage.CodeNoSpace,
	} {
		f := newFake(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(status)
		})
		s := f.open(t, "password")
		_, serr := s.Stat(t.Context(), "key", storage.StatOptions{})
		_, gerr := s.GetStream(t.Context(), "key", storage.GetOptions{})
		_, perr := storage.Set(t.Context(), s, "key", []byte("x"), storage.SetOptions{})
		_, lerr := s.List(t.Context(), storage.ListOptions{})
		for _, err := range []error{serr, gerr, perr, lerr, s.Delete(t.Context(), "key"), s.Check(t.Context())} {
			if storage.CodeOf(err) != want {
				t.Errorf("%d: %v, want %s", status, err, want)
			}
		}
	}
}

func TestVersionsOfIdentityServicesAreToldApart(t *testing.T) {
	for address, want := range map[string]int{
		"https://keystone.example.com/v3": 3, "https://keystone.example.com:5000/v2.0": 2, "http://swift/auth/v1.0": 1,
		"https://auth.api.rackspacecloud.com/v1.0": 1, "https://keystone.example.com/identity": 3, "https://v1.example.com/v3/": 3,
	} {
		if got := authVersion(address); got != want {
			t.Errorf("%s is of version %d, want %d", address, got, want)
		}
	}
}

func TestTheExactTimeIsPreferred(t *testing.T) {
	h := http.Header{"X-Timestamp": {"1796063660.87880"}, "Last-Modified": {"Mon, 30 Nov 2026 18:34:21 GMT"}}
	if got, want := modified(h), time.Date(2026, 11, 30, 18, 34, 20, 878800000, time.UTC); got.Sub(want).Abs() > 10*time.Microsecond {
		t.Errorf("modified at %s, want %s", got, want)
	}
	h.Del("X-Timestamp")
	if got, want := modified(h), time.Date(2026, 11, 30, 18, 34, 21, 0, time.UTC); !got.Equal(want) {
		t.Errorf("modified at %s, want %s", got, want)
	}
}

// What eventlet answers to HEAD of a container: the end of a chunked body that is
// not there, and a little late.
func TestTheEndOfACheckIsNotTheNextAnswer(t *testing.T) {
	f := newFake(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/account/container" {
			w.Header().Set("Content-Length", "5")
			return
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n")
		time.Sleep(10 * time.Millisecond)
		_, _ = io.WriteString(conn, "0\r\n\r\n")
		time.Sleep(10 * time.Millisecond)
	})
	s := f.open(t, "password")
	for range 5 {
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Stat(t.Context(), "key", storage.StatOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

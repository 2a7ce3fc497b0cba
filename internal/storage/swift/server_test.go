//go:build stores

package swift

import (
	"bytes"
	"net/url"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

const prefix = "some prefix/"

func openOn(t testing.TB, server *servers.Swift, authURL, container string) *Storage {
	t.Helper()
	s, err := New(Config{
		AuthURL: authURL, Container: container, Prefix: prefix,
		Auth: Auth{Username: server.Username, Password: server.Password},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSwiftKeepsTheContract(t *testing.T) {
	server := servers.StartSwift(t) // which takes seconds: all tests share it
	t.Run("a put that is cut on the wire leaves the old object", func(t *testing.T) { cutOnTheWire(t, server) })
	t.Run("it says what is wrong", func(t *testing.T) { saysWhatIsWrong(t, server) })
	t.Run("a broken network", func(t *testing.T) { brokenNetwork(t, server) })
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		return openOn(t, server, server.AuthURL, server.Container(t))
	}, storagetest.Recorded(t, "swift", storagetest.Options{
		Reopen: func(t *testing.T, s storage.Storage) storage.Storage {
			return openOn(t, server, server.AuthURL, s.(*Storage).container)
		},
		Debris: func(t *testing.T, _ storage.Storage) []string { return server.Debris(t) },
		Keys: func(key string) storagetest.KeyFate {
			if len(prefix)+len(key) > maxName {
				return storagetest.RefusedKey
			}
			return storagetest.Held
		},
	}))
}

func brokenNetwork(t *testing.T, server *servers.Swift) {
	auth, err := url.Parse(server.AuthURL)
	if err != nil {
		t.Fatal(err)
	}
	container := server.Container(t)
	direct := openOn(t, server, server.AuthURL, container)
	defer direct.Close()
	session, err := direct.sessions.get(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	storagetest.RunFaults(t, storagetest.Remote{
		Address: auth.Host,
		// With a token at hand, so that what fails is no request for one.
		Open: func(t *testing.T, address string) storage.Storage {
			there, base, known := *auth, *session.base, *session
			there.Host, base.Host = address, address
			s := openOn(t, server, there.String(), container)
			known.base = &base
			s.sessions.current.Store(&known)
			return s
		},
		Options: storagetest.Options{Debris: func(t *testing.T, _ storage.Storage) []string { return server.Debris(t) }},
	})
}

// cutOnTheWire cuts between client and server, where the store cannot take
// anything back.
func cutOnTheWire(t *testing.T, server *servers.Swift) {
	container := server.Container(t)
	s := openOn(t, server, server.AuthURL, container)
	defer s.Close()
	old := []byte("the old object")
	if _, err := storage.Set(t.Context(), s, "key", old, storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	auth, err := url.Parse(server.AuthURL)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("x"), 300_000)
	for name, test := range map[string]struct {
		size int64
		cut  int64
	}{
		"nothing of it":                 {300_000, 0},
		"half":                          {300_000, 150_000},
		"one byte short":                {300_000, 299_999},
		"of unknown length, half":       {-1, 150_000},
		"of unknown length, at the end": {-1, 300_000},
		"a small one":                   {100, 99},
	} {
		proxied := *auth
		proxied.Host = servers.CutAfter(t, auth.Host, test.cut)
		cut := openOn(t, server, proxied.String(), container)
		content := data
		if test.size == 100 {
			content = data[:100]
		}
		_, err := cut.SetStream(t.Context(), "key", storage.Stream(bytes.NewReader(content), test.size), storage.SetOptions{})
		if storage.Classify(err) != storage.ClassTransient {
			t.Errorf("%s: %v, want a transient error", name, err)
		}
		if got, _, err := storage.Get(t.Context(), s, "key"); err != nil || !bytes.Equal(got, old) {
			t.Errorf("%s: the key holds %d bytes, %v", name, len(got), err)
		}
		cut.Close()
	}
	if left := server.Debris(t); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func saysWhatIsWrong(t *testing.T, server *servers.Swift) {
	container := server.Container(t)
	for name, test := range map[string]struct {
		auth      Auth
		container string
		want      storage.Code
	}{
		"nothing":           {Auth{Username: server.Username, Password: server.Password}, container, ""},
		"a wrong password":  {Auth{Username: server.Username, Password: "wrong"}, container, storage.CodeAccessDenied},
		"another container": {Auth{Username: server.Username, Password: server.Password}, "missing", storage.CodeBucketNotFound},
	} {
		s, err := New(Config{AuthURL: server.AuthURL, Container: test.container, Auth: test.auth})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(t.Context()); storage.CodeOf(err) != test.want {
			t.Errorf("%s: check gives %v", name, err)
		}
		if _, err := storage.Set(t.Context(), s, "key", []byte("x"), storage.SetOptions{}); storage.CodeOf(err) != test.want {
			t.Errorf("%s: a write gives %v", name, err)
		}
		s.Close()
	}
}

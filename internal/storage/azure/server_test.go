//go:build stores

package azure

import (
	"bytes"
	"net/url"
	"path"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

const prefix = "some prefix/"

func openOn(t testing.TB, server *servers.Azurite, endpoint, container string) *Storage {
	t.Helper()
	s, err := New(Config{
		Endpoint: endpoint, Container: container, Prefix: prefix,
		Auth: Auth{Type: Key, Account: server.Account, Key: server.Key},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAzureKeepsTheContract(t *testing.T) {
	server := servers.StartAzurite(t) // which takes seconds: all tests share it
	t.Run("a put that is cut on the wire leaves the old object", func(t *testing.T) { cutOnTheWire(t, server) })
	t.Run("it says what is wrong", func(t *testing.T) { saysWhatIsWrong(t, server) })
	t.Run("a broken network", func(t *testing.T) { brokenNetwork(t, server) })
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		return openOn(t, server, server.Endpoint, server.Container(t))
	}, storagetest.Recorded(t, "azure on azurite", storagetest.Options{
		Reopen: func(t *testing.T, s storage.Storage) storage.Storage {
			name := path.Base(s.(*Storage).client.URL())
			return openOn(t, server, server.Endpoint, name)
		},
		Keys: func(key string) storagetest.KeyFate {
			if (&Storage{prefix: prefix}).named("", key) != nil {
				return storagetest.RefusedKey
			}
			return storagetest.Held
		},
	}))
}

func brokenNetwork(t *testing.T, server *servers.Azurite) {
	endpoint, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	container := server.Container(t)
	storagetest.RunFaults(t, storagetest.Remote{
		Address: endpoint.Host,
		Open: func(t *testing.T, address string) storage.Storage {
			there := *endpoint
			there.Host = address
			return openOn(t, server, there.String(), container)
		},
	})
}

// cutOnTheWire cuts between client and server, where the store cannot take
// anything back.
func cutOnTheWire(t *testing.T, server *servers.Azurite) {
	container := server.Container(t)
	s := openOn(t, server, server.Endpoint, container)
	defer s.Close()
	old := []byte("the old object")
	if _, err := storage.Set(t.Context(), s, "key", old, storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	endpoint, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ length, size, cut int64 }{
		"nothing of it":              {300_000, 300_000, 0},
		"half":                       {300_000, 300_000, 150_000},
		"one byte short":             {300_000, 300_000, 299_999},
		"of unknown length, half":    {300_000, -1, 150_000},
		"in the second block":        {blockBytes + 300_000, blockBytes + 300_000, blockBytes + 150_000},
		"a small one":                {100, 100, 99},
		"before the list":            {300_000, 300_000, 300_000},
		"before the list, collected": {300_000, -1, 300_000},
	} {
		proxied := *endpoint
		proxied.Host = servers.CutAfter(t, endpoint.Host, test.cut)
		cut := openOn(t, server, proxied.String(), container)
		content := bytes.Repeat([]byte("x"), int(test.length))
		_, err := cut.SetStream(t.Context(), "key", storage.Stream(bytes.NewReader(content), test.size), storage.SetOptions{})
		if storage.Classify(err) != storage.ClassTransient {
			t.Errorf("%s: %v, want a transient error", name, err)
		}
		if got, _, err := storage.Get(t.Context(), s, "key"); err != nil || !bytes.Equal(got, old) {
			t.Errorf("%s: the key holds %d bytes, %v", name, len(got), err)
		}
		cut.Close()
	}
}

func saysWhatIsWrong(t *testing.T, server *servers.Azurite) {
	container := server.Container(t)
	soon, ago := time.Now().Add(time.Hour), time.Now().Add(-time.Minute)
	for name, test := range map[string]struct {
		auth      Auth
		container string
		want      storage.Code
	}{
		"nothing":           {Auth{Type: Key, Account: server.Account, Key: server.Key}, container, ""},
		"a signature":       {Auth{Type: SAS, SASToken: "?" + server.SAS(t, container, soon)}, container, ""},
		"nothing any more":  {Auth{Type: SAS, SASToken: server.SAS(t, container, ago)}, container, storage.CodeCredentialExpired},
		"a wrong key":       {Auth{Type: Key, Account: server.Account, Key: "d3Jvbmc="}, container, storage.CodeAccessDenied},
		"another container": {Auth{Type: Key, Account: server.Account, Key: server.Key}, "missing", storage.CodeBucketNotFound},
	} {
		s, err := New(Config{Endpoint: server.Endpoint, Container: test.container, Auth: test.auth})
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

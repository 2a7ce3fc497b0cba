package http

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

var info0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func open(t testing.TB, cfg Config) *Storage {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// keysAsPaths says what becomes of keys that are paths to the server.
func keysAsPaths(key string) storagetest.KeyFate {
	if key == ".storagemux" {
		return storagetest.RefusedKey // the folder of temporary files
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." || len(segment) > 255 {
			return storagetest.RefusedKey
		}
	}
	return storagetest.Held
}

func options(server *servers.WebDAV) storagetest.Options {
	return storagetest.Options{
		NoKeyUnderKey: true, FoldersStay: true, Keys: keysAsPaths,
		ListKeys: 300, // each key is some five requests
		Reopen: func(t *testing.T, s storage.Storage) storage.Storage {
			return open(t, Config{URL: s.(*Storage).base.String(), Flavor: WebDAV, Auth: Auth{Username: server.Username, Password: server.Password}})
		},
		Debris: func(t *testing.T, s storage.Storage) []string {
			var left []string
			for _, folder := range []string{"tmp", "parts/open"} {
				entries, err := os.ReadDir(filepath.Join(server.Files(s.(*Storage).base.String()), ".storagemux", folder))
				if err != nil && !os.IsNotExist(err) {
					t.Error(err)
				}
				for _, e := range entries {
					left = append(left, e.Name())
				}
			}
			return left
		},
	}
}

func TestHTTPOnGoWebDAVKeepsTheContract(t *testing.T) {
	server := servers.GoWebDAV(t)
	opts := options(server)
	opts.OverwritesHaveGaps = true // its MOVE deletes what is there, and then renames
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		return open(t, Config{URL: server.Folder(t), Flavor: WebDAV, Auth: Auth{Username: server.Username, Password: server.Password}})
	}, storagetest.Recorded(t, "http on x/net/webdav", opts))
}

func TestHTTPThroughABrokenNetworkKeepsTheContract(t *testing.T) {
	server := servers.GoWebDAV(t)
	folder, err := url.Parse(server.Folder(t))
	if err != nil {
		t.Fatal(err)
	}
	storagetest.RunFaults(t, storagetest.Remote{
		Address: folder.Host,
		Open: func(t *testing.T, address string) storage.Storage {
			there := *folder
			there.Host = address
			return open(t, Config{URL: there.String(), Flavor: WebDAV, Auth: Auth{Username: server.Username, Password: server.Password}})
		},
	})
}

func TestWithoutHeadTheFirstByteIsAskedFor(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodHead:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case r.URL.Path == "/missing":
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Path == "/empty":
			http.ServeContent(w, r, "", info0, strings.NewReader(""))
		default:
			http.ServeContent(w, r, "", info0, strings.NewReader("content"))
		}
	}))
	defer server.Close()
	s := open(t, Config{URL: server.URL, Flavor: Plain})
	defer s.Close()
	for key, want := range map[string]int64{"key": 7, "empty": 0} {
		if info, err := s.Stat(t.Context(), key, storage.StatOptions{}); err != nil || info.Size != want || !info.ModTime.Equal(info0) {
			t.Errorf("stat of %q: %+v, %v", key, info, err)
		}
	}
	if _, err := s.Stat(t.Context(), "missing", storage.StatOptions{}); storage.CodeOf(err) != storage.CodeKeyNotFound {
		t.Errorf("stat of what is missing: %v", err)
	}
}

func TestEachKindOfAuthenticationIsSent(t *testing.T) {
	tests := map[string]struct {
		auth         Auth
		header, want string
	}{
		"password": {Auth{Username: "u", Password: "p"}, "Authorization", "Basic dTpw"},
		"token":    {Auth{Token: "t"}, "Authorization", "Bearer t"},
		"header":   {Auth{Headers: map[string]string{"x-api-key": "k"}}, "X-Api-Key", "k"},
		"nobody":   {Auth{}, "Authorization", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got string
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get(tt.header) }))
			defer server.Close()
			s := open(t, Config{URL: server.URL, Flavor: Plain, Auth: tt.auth})
			defer s.Close()
			if err := s.Check(t.Context()); err != nil || got != tt.want {
				t.Errorf("%s is %q, %v", tt.header, got, err)
			}
		})
	}
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	for _, cfg := range []Config{
		{}, {URL: "dav.example.com/x", Flavor: WebDAV}, {URL: "https://u:p@example.com", Flavor: WebDAV}, {URL: "https://example.com/?x=1", Flavor: Plain},
		{URL: "https://example.com"}, {URL: "https://example.com", Flavor: "FTP"}, {URL: "https://example.com", Flavor: Plain, CABundle: []byte("x")},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

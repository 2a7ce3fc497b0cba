package bunny

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/scratch"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

func open(t testing.TB, cfg Config) *Storage {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func options(server *servers.Bunny) storagetest.Options {
	return storagetest.Options{
		NoKeyUnderKey: true, FoldersStay: true,
		Keys: func(key string) storagetest.KeyFate {
			if writable("", key) != nil {
				return storagetest.RefusedKey
			}
			return storagetest.Held
		},
		Reopen: func(t *testing.T, s storage.Storage) storage.Storage {
			zone := strings.Trim(s.(*Storage).base.Path, "/")
			return open(t, Config{Endpoint: server.Endpoint, Zone: zone, AccessKey: server.AccessKey, Scratch: scratch.Files(t.TempDir(), 1<<30)})
		},
		Debris: func(t *testing.T, s storage.Storage) []string {
			zone := strings.Trim(s.(*Storage).base.Path, "/")
			return append(server.Debris(t), server.Folder(t, zone, storage.ReservedParts+"open")...)
		},
	}
}

func TestBunnyKeepsTheContract(t *testing.T) {
	server := servers.StartBunny(t)
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		return open(t, Config{Endpoint: server.Endpoint, Zone: server.Zone(t), AccessKey: server.AccessKey, Scratch: scratch.Files(t.TempDir(), 1<<30)})
	}, storagetest.Recorded(t, "bunny", options(server)))
}

func TestBunnyThroughABrokenNetworkKeepsTheContract(t *testing.T) {
	server := servers.StartBunny(t)
	zone := server.Zone(t)
	storagetest.RunFaults(t, storagetest.Remote{
		Address: strings.TrimPrefix(server.Endpoint, "http://"), Options: options(server),
		Open: func(t *testing.T, address string) storage.Storage {
			return open(t, Config{Endpoint: "http://" + address, Zone: zone, AccessKey: server.AccessKey, Scratch: scratch.Files(t.TempDir(), 1<<30)})
		},
	})
}

func TestTheHostIsThatOfTheRegion(t *testing.T) {
	for region, want := range map[string]string{
		"":    "https://storage.bunnycdn.com/assets/",
		"uk":  "https://uk.storage.bunnycdn.com/assets/",
		"syd": "https://syd.storage.bunnycdn.com/assets/",
	} {
		s := open(t, Config{Region: region, Zone: "assets", AccessKey: "x"})
		if got := s.base.String(); got != want {
			t.Errorf("region %q is asked at %s, want %s", region, got, want)
		}
	}
	for _, cfg := range []Config{{Zone: "assets"}, {AccessKey: "x"}, {Zone: "a", AccessKey: "x", Endpoint: "ftp://host"}, {Zone: "a", AccessKey: "x", Endpoint: "https://host/path"}} {
		if _, err := New(cfg); storage.CodeOf(err) != storage.CodeRejected {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestAWrongAccessKeyIsDenied(t *testing.T) {
	server := servers.StartBunny(t)
	zone := server.Zone(t)
	s := open(t, Config{Endpoint: server.Endpoint, Zone: zone, AccessKey: server.AccessKey})
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("check: %v", err)
	}
	for _, cfg := range []Config{
		{Endpoint: server.Endpoint, Zone: zone, AccessKey: "another"},
		{Endpoint: server.Endpoint, Zone: "no-zone", AccessKey: server.AccessKey},
	} {
		if err := open(t, cfg).Check(t.Context()); storage.CodeOf(err) != storage.CodeAccessDenied {
			t.Errorf("check of %s: %v", cfg.Zone, err)
		}
	}
}

// TestAKnownDigestSparesTheScratch looks at whether room is taken.
func TestAKnownDigestSparesTheScratch(t *testing.T) {
	server := servers.StartBunny(t)
	s := open(t, Config{Endpoint: server.Endpoint, Zone: server.Zone(t), AccessKey: server.AccessKey, Scratch: scratch.Files(t.TempDir(), 10)})
	data := []byte("more than ten bytes")
	sum := sha256.Sum256(data)
	if _, err := storage.Set(t.Context(), s, "key", data, storage.SetOptions{}); storage.CodeOf(err) != storage.CodeNoSpace {
		t.Errorf("a body without room for it: %v", err)
	}
	unknown := storage.Stream(bytes.NewReader(data), -1)
	if _, err := s.SetStream(t.Context(), "key", unknown, storage.SetOptions{}); storage.CodeOf(err) != storage.CodeNoSpace {
		t.Errorf("a body of unknown length without room for it: %v", err)
	}
	if _, err := storage.Set(t.Context(), s, "key", data, storage.SetOptions{Checksums: storage.Checksums{SHA256: sum[:]}}); err != nil {
		t.Errorf("a body whose digest is known: %v", err)
	}
	if _, err := storage.Set(t.Context(), s, "small", data[:10], storage.SetOptions{}); err != nil {
		t.Errorf("after that there is room again: %v", err)
	}
}

func TestAnswersOfTheServerGetTheirCodes(t *testing.T) {
	for status, want := range map[int]storage.Code{
		400: storage.CodeRejected, 401: storage.CodeAccessDenied, 403: storage.CodeAccessDenied, 408: storage.CodeUnavailable,
		413: storage.CodeTooLarge, 429: storage.CodeThrottled, 500: storage.CodeUnavailable, 501: storage.CodeUnsupported,
		503: storage.CodeUnavailable, 507: storage.CodeNoSpace,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(status)
		}))
		s := open(t, Config{Endpoint: server.URL, Zone: "zone", AccessKey: "x"})
		_, serr := s.Stat(t.Context(), "key", storage.StatOptions{})
		_, perr := storage.Set(t.Context(), s, "key", []byte("x"), storage.SetOptions{})
		_, lerr := s.List(t.Context(), storage.ListOptions{})
		for _, err := range []error{serr, perr, lerr, s.Delete(t.Context(), "key")} {
			if storage.CodeOf(err) != want && (status != 501 || storage.CodeOf(err) != storage.CodeUnsupported) {
				t.Errorf("%d: %v, want %s", status, err, want)
			}
		}
		s.Close()
		server.Close()
	}
}

func TestNoNameOfTheZoneIsCleaned(t *testing.T) {
	for _, key := range []string{"a//b", "a/../b", "./a", "a/", "/a", `a\b`, "a\nb", strings.Repeat("k", 256)} {
		if err := writable("SetStream", key); storage.CodeOf(err) != storage.CodeInvalidKey {
			t.Errorf("%q: %v", key, err)
		}
	}
}

//go:build stores

package http

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

func TestHTTPOnNginxWebDAVKeepsTheContract(t *testing.T) {
	server := servers.Nginx(t, true)
	opts := options(server)
	opts.Keys = func(key string) storagetest.KeyFate {
		fate := keysAsPaths(key)
		if fate == storagetest.Held && strings.Contains("/"+key, "/.") {
			return storagetest.Mangled // its module lists no names that begin with a dot
		}
		return fate
	}
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		return open(t, Config{URL: server.Folder(t), Flavor: WebDAV})
	}, storagetest.Recorded(t, "http on nginx", opts))
}

func TestHTTPOnLighttpdKeepsTheContract(t *testing.T) {
	server := servers.Lighttpd(t)
	opts := options(server)
	opts.Keys = func(key string) storagetest.KeyFate {
		if strings.ContainsFunc(key, unicode.IsControl) {
			return storagetest.RefusedKey
		}
		return keysAsPaths(key)
	}
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		return open(t, Config{URL: server.Folder(t), Flavor: WebDAV})
	}, storagetest.Recorded(t, "http on lighttpd", opts))
}

func TestPlainFilesCanBeReadAndNotWritten(t *testing.T) {
	server := servers.Nginx(t, false)
	s := open(t, Config{URL: server.Folder(t), Flavor: Plain})
	defer s.Close()
	ctx := t.Context()
	dir := server.Files(s.base.String())
	if err := os.MkdirAll(filepath.Join(dir, "a b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a b/100%.txt"), []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	data, info, err := storage.Get(ctx, s, "a b/100%.txt")
	if err != nil || string(data) != "content" || info.Headers.ContentType != "text/plain" {
		t.Errorf("read %q, %+v, %v", data, info, err)
	}
	obj, err := s.GetStream(ctx, "a b/100%.txt", storage.GetOptions{Range: &storage.Range{First: -3}})
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(obj.Body); err != nil || string(data) != "ent" || obj.Size != 7 || obj.Offset != 4 {
		t.Errorf("read %q at %d of %d, %v", data, obj.Offset, obj.Size, err)
	}
	obj.Body.Close()
	for _, key := range []string{"a b", "missing", "a b/missing"} {
		if _, err := s.Stat(ctx, key, storage.StatOptions{}); storage.CodeOf(err) != storage.CodeKeyNotFound {
			t.Errorf("stat of %q: %v", key, err)
		}
	}
	_, werr := storage.Set(ctx, s, "key", nil, storage.SetOptions{})
	_, lerr := s.List(ctx, storage.ListOptions{})
	_, perr := s.SetPartial(ctx, "key", 0, storage.Bytes(nil))
	for _, err := range []error{werr, lerr, perr, s.Delete(ctx, "key")} {
		if storage.CodeOf(err) != storage.CodeUnsupported {
			t.Errorf("got %v, want UNSUPPORTED", err)
		}
	}
	if err := s.Check(ctx); err != nil {
		t.Errorf("check: %v", err)
	}
}

package http

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

func TestTemporaryFilesOfCrashedWritersAreRemovedAfterADay(t *testing.T) {
	server := servers.GoWebDAV(t)
	folder := server.Folder(t)
	tmp := filepath.Join(server.Files(folder), ".storagemux/tmp")
	if err := os.MkdirAll(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"old": tmpExpiry + time.Hour, "young": tmpExpiry - time.Hour} {
		path := filepath.Join(tmp, name)
		if err := os.WriteFile(path, []byte("half"), 0o666); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, Config{URL: folder, Flavor: WebDAV, Auth: Auth{Username: server.Username, Password: server.Password}})
	if _, err := storage.Set(t.Context(), s, "key", []byte("content"), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // which waits for the sweep
		t.Fatal(err)
	}
	entries, err := os.ReadDir(tmp)
	if err != nil || len(entries) != 1 || entries[0].Name() != "young" {
		t.Errorf("left are %v, %v", entries, err)
	}
}

func TestTemporaryFilesAreLookedForOnceAnHour(t *testing.T) {
	server := servers.GoWebDAV(t)
	s := open(t, Config{URL: server.Folder(t), Flavor: WebDAV, Auth: Auth{Username: server.Username, Password: server.Password}})
	defer s.Close()
	s.maybeSweep()
	first := s.swept.Load()
	s.maybeSweep()
	if s.swept.Load() != first {
		t.Error("they were looked for again at once")
	}
	s.swept.Store(first - int64(sweepEvery))
	s.maybeSweep()
	if s.swept.Load() == first-int64(sweepEvery) {
		t.Error("they were not looked for an hour later")
	}
}

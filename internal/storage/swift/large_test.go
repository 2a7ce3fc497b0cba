//go:build stores

package swift

import (
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"

	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

func TestSixteenWritesOfAGibibyteStayUnder128MiB(t *testing.T) {
	storagetest.LargeWrites(t, 1<<30, func(t *testing.T) string { return servers.Sink(t) }, func(t *testing.T, address string) storage.Storage {
		return largeStore(t, address)
	})
}

func largeStore(t *testing.T, address string) storage.Storage {
	t.Helper()
	s, err := New(Config{AuthURL: "http://" + address + "/auth/v1.0", Container: "c", Auth: Auth{Username: "u", Password: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

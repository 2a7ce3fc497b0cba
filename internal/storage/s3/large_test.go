//go:build stores

package s3

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
	s, err := New(Config{
		Endpoint: "http://" + address, Region: "r", Bucket: "b", AddressingStyle: Path,
		Auth: Auth{Type: Static, AccessKeyID: "id", SecretAccessKey: "key"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

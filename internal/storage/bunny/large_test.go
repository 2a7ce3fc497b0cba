//go:build stores

package bunny

import (
	"os"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/scratch"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

func TestSixteenWritesOfAGibibyteStayUnder128MiB(t *testing.T) {
	storagetest.LargeWrites(t, 1<<30, func(t *testing.T) string { return servers.Sink(t) }, func(t *testing.T, address string) storage.Storage {
		return open(t, Config{Endpoint: "http://" + address, Zone: "zone", AccessKey: "x", Scratch: scratch.Files(os.TempDir(), 20<<30)})
	})
}

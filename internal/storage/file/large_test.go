//go:build stores

package file

import (
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"

	"github.com/suaveplan/storagemux/internal/storage/storagetest"
)

func TestSixteenWritesOfAGibibyteStayUnder128MiB(t *testing.T) {
	storagetest.LargeWrites(t, 1<<30, func(t *testing.T) string { return t.TempDir() }, func(t *testing.T, address string) storage.Storage {
		return open(t, address)
	})
}

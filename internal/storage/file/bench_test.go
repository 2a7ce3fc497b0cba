package file

import (
	"testing"

	"github.com/suaveplan/storagemux/internal/storage/storagetest"
)

// BenchmarkFile is on a disk, whose time to sync is most of that of a PUT.
func BenchmarkFile(b *testing.B) { storagetest.Bench(b, open(b, b.TempDir()), nil) }

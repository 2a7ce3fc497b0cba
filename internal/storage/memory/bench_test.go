package memory

import (
	"testing"

	"github.com/suaveplan/storagemux/internal/storage/storagetest"
)

func BenchmarkMemory(b *testing.B) { storagetest.Bench(b, New(0), nil) }

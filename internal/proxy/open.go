package proxy

import (
	"fmt"
	"io"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/file"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// openStore makes the store of a backend.
func openStore(b *muxconfig.Backend) (storage.Storage, error) {
	switch {
	case b.Memory != nil:
		return memory.New(b.Memory.SizeLimit), nil
	case b.File != nil:
		return file.New(file.Config{Path: b.File.Path})
	default:
		return nil, fmt.Errorf("its type is unknown")
	}
}

// closeStore lets go of what a store keeps for requests to come, such as idle
// connections. Requests that run are not disturbed.
func closeStore(s storage.Storage) {
	if closer, ok := s.(io.Closer); ok {
		_ = closer.Close()
	}
}

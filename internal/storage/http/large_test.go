//go:build stores

package http

import (
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"

	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

func TestSixteenWritesOfAGibibyteStayUnder128MiB(t *testing.T) {
	storagetest.LargeWrites(t, 1<<30, func(t *testing.T) string { return servers.Sink(t) }, func(t *testing.T, address string) storage.Storage {
		return open(t, Config{URL: "http://" + address + "/", Flavor: WebDAV})
	})
}

package bunny

import (
	"net/http"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage/scratch"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

// BenchmarkBunny has its server in the same process, whose CPU is in all figures.
func BenchmarkBunny(b *testing.B) {
	server := servers.StartBunny(b)
	s := open(b, Config{Endpoint: server.Endpoint, Zone: server.Zone(b), AccessKey: server.AccessKey, Scratch: scratch.Files(b.TempDir(), 1<<30)})
	defer s.Close()
	storagetest.Bench(b, s, storagetest.BareHTTP(b, s.base.String(), http.Header{"Accesskey": {server.AccessKey}}))
}

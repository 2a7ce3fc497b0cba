//go:build stores

package http

import (
	"net/http"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

// BenchmarkHTTPOnNginx compares with a PUT over the object itself, which a cut
// would leave in pieces.
func BenchmarkHTTPOnNginx(b *testing.B) {
	s := open(b, Config{URL: servers.Nginx(b, true).Folder(b), Flavor: WebDAV})
	defer s.Close()
	storagetest.Bench(b, s, storagetest.BareHTTP(b, s.base.String(), http.Header{}))
}

//go:build stores

package swift

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/ncw/swift/v2"

	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

func BenchmarkSwift(b *testing.B) {
	server := servers.StartSwift(b)
	container := server.Container(b)
	s := openOn(b, server, server.AuthURL, container)
	defer s.Close()
	transport := &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true}
	defer transport.CloseIdleConnections()
	conn := &swift.Connection{AuthUrl: server.AuthURL, AuthVersion: 1, UserName: server.Username, ApiKey: server.Password, Transport: transport}
	if err := conn.Authenticate(b.Context()); err != nil {
		b.Fatal(err)
	}
	storagetest.Bench(b, s, &storagetest.Bare{
		Name: "ncw-swift",
		Put: func(ctx context.Context, key string, body io.ReadSeeker, _ int64) error {
			_, err := conn.ObjectPut(ctx, container, key, body, false, "", "application/octet-stream", nil)
			return err
		},
		Get: func(ctx context.Context, key string) (io.ReadCloser, error) {
			file, _, err := conn.ObjectOpen(ctx, container, key, false, nil)
			return file, err
		},
	})
}

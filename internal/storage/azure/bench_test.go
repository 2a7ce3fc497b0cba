//go:build stores

package azure

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

// BenchmarkAzureOnAzurite compares with blobs that are put in one request each.
func BenchmarkAzureOnAzurite(b *testing.B) {
	server := servers.StartAzurite(b)
	s := openOn(b, server, server.Endpoint, server.Container(b))
	defer s.Close()
	key, err := container.NewSharedKeyCredential(server.Account, server.Key)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client, err := container.NewClientWithSharedKeyCredential(s.client.URL(), key,
		&container.ClientOptions{ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: transport}}})
	if err != nil {
		b.Fatal(err)
	}
	storagetest.Bench(b, s, &storagetest.Bare{
		Name: "azblob",
		Put: func(ctx context.Context, key string, body io.ReadSeeker, _ int64) error {
			_, err := client.NewBlockBlobClient(key).Upload(ctx, streaming.NopCloser(body), nil)
			return err
		},
		Get: func(ctx context.Context, key string) (io.ReadCloser, error) {
			got, err := client.NewBlobClient(key).DownloadStream(ctx, nil)
			return got.Body, err
		},
	})
}

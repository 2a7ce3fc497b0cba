package s3

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

func BenchmarkS3OnVersitygw(b *testing.B) {
	server := servers.Versitygw(b)
	s := open(b, server)
	defer s.Close()
	core, err := minio.NewCore(strings.TrimPrefix(server.Endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(server.AccessKeyID, server.SecretAccessKey, ""), Region: server.Region,
		BucketLookup: minio.BucketLookupPath, MaxRetries: 1, Transport: &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true},
	})
	if err != nil {
		b.Fatal(err)
	}
	minio.DefaultRetryUnit = 0
	bucket := s.target.bucket
	storagetest.Bench(b, s, &storagetest.Bare{
		Name: "minio-go",
		Put: func(ctx context.Context, key string, body io.ReadSeeker, size int64) error {
			_, err := core.PutObject(ctx, bucket, key, body, size, "", "", minio.PutObjectOptions{})
			return err
		},
		Get: func(ctx context.Context, key string) (io.ReadCloser, error) {
			body, _, _, err := core.GetObject(ctx, bucket, key, minio.GetObjectOptions{})
			return body, err
		},
	})
}

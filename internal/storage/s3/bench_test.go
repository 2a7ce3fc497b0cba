package s3

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

func BenchmarkS3OnVersitygw(b *testing.B) {
	s := open(b, servers.Versitygw(b))
	defer s.Close()
	storagetest.Bench(b, s)
}

// BenchmarkBareClient is a well-known client library on the same server, for
// comparison. Both report the time of this process's CPU, which unlike the time
// that passes does not depend on the server.
func BenchmarkBareClient(b *testing.B) {
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
	bucket, data := s.target.bucket, bytes.Repeat([]byte("x"), 64<<10)
	get := func(ctx context.Context) error {
		body, _, _, err := core.GetObject(ctx, bucket, "key", minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		defer body.Close()
		_, err = io.Copy(io.Discard, body)
		return err
	}
	put := func(ctx context.Context) error {
		_, err := core.PutObject(ctx, bucket, "key", bytes.NewReader(data), int64(len(data)), "", "", minio.PutObjectOptions{})
		return err
	}
	measure(b, "minio-go/PUT/64KiB", put)
	measure(b, "minio-go/GET/64KiB", get)
	measure(b, "storagemux/PUT/64KiB", func(ctx context.Context) error {
		_, err := storage.Set(ctx, s, "key", data, storage.SetOptions{})
		return err
	})
	measure(b, "storagemux/GET/64KiB", func(ctx context.Context) error {
		obj, err := s.GetStream(ctx, "key", storage.GetOptions{})
		if err != nil {
			return err
		}
		defer obj.Body.Close()
		_, err = io.Copy(io.Discard, obj.Body)
		return err
	})
}

func measure(b *testing.B, name string, do func(context.Context) error) {
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		before := cpuTime()
		for b.Loop() {
			if err := do(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((cpuTime()-before).Microseconds())/float64(b.N), "cpu-µs/op")
	})
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

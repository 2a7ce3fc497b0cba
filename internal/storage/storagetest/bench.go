package storagetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Bare is what a client does that is not a store: the least that the same server
// can be written and read with.
type Bare struct {
	// Name is that of the library, "minio-go".
	Name string
	Put  func(ctx context.Context, key string, body io.ReadSeeker, size int64) error
	Get  func(ctx context.Context, key string) (io.ReadCloser, error)
}

// BenchSizes are those of the objects that Bench writes and reads.
var BenchSizes = []int64{1 << 10, 64 << 10, 8 << 20}

// Bench measures GET and PUT of some sizes on store, and on the same server with
// a bare client unless that is nil. It reports this process's time of CPU, which
// unlike the time that passes does not depend on a server, unless that runs in the
// same process.
func Bench(b *testing.B, store storage.Storage, bare *Bare) {
	for _, size := range BenchSizes {
		data := noiseBytes(uint64(size), size)
		buffer := make([]byte, 64<<10)
		read := func(r io.ReadCloser) error {
			defer r.Close()
			n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, buffer)
			if err == nil && n != size {
				err = fmt.Errorf("read %d of %d bytes", n, size)
			}
			return err
		}
		benchOne(b, "PUT", "storagemux", size, func(ctx context.Context) error {
			_, err := store.SetStream(ctx, "key", storage.Stream(bytes.NewReader(data), size), storage.SetOptions{})
			return err
		})
		benchOne(b, "GET", "storagemux", size, func(ctx context.Context) error {
			obj, err := store.GetStream(ctx, "key", storage.GetOptions{})
			if err != nil {
				return err
			}
			return read(obj.Body)
		})
		if bare == nil {
			continue
		}
		benchOne(b, "PUT", bare.Name, size, func(ctx context.Context) error {
			return bare.Put(ctx, "bare", bytes.NewReader(data), size)
		})
		benchOne(b, "GET", bare.Name, size, func(ctx context.Context) error {
			body, err := bare.Get(ctx, "bare")
			if err != nil {
				return err
			}
			return read(body)
		})
	}
}

func benchOne(b *testing.B, op, who string, size int64, do func(context.Context) error) {
	b.Run(fmt.Sprintf("%s/%dKiB/%s", op, size>>10, who), func(b *testing.B) {
		b.SetBytes(size)
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

// cpuTime is what this process has used of CPUs.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

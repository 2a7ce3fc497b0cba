package storagetest

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Bench measures GET and PUT of some sizes on the store that open returns.
func Bench(b *testing.B, store storage.Storage) {
	ctx := b.Context()
	for _, size := range []int64{1 << 10, 64 << 10, 8 << 20} {
		data := noiseBytes(uint64(size), size)
		name := fmt.Sprintf("%dKiB", size>>10)
		b.Run("PUT/"+name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			for b.Loop() {
				body := storage.Stream(bytes.NewReader(data), size)
				if _, err := store.SetStream(ctx, "key", body, storage.SetOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("GET/"+name, func(b *testing.B) {
			b.SetBytes(size)
			b.ReportAllocs()
			if _, err := storage.Set(ctx, store, "key", data, storage.SetOptions{}); err != nil {
				b.Fatal(err)
			}
			buffer := make([]byte, 64<<10)
			for b.Loop() {
				obj, err := store.GetStream(ctx, "key", storage.GetOptions{})
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, obj.Body, buffer)
				obj.Body.Close()
				if err != nil || n != size {
					b.Fatalf("read %d of %d bytes, %v", n, size, err)
				}
			}
		})
	}
}

package s3

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
)

// BenchmarkGetLoopback reads objects from a server that does as little as it can, so
// that what is measured is this side: request, signature, connection, answer.
func BenchmarkGetLoopback(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := loopback(b, size)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			b.RunParallel(func(pb *testing.PB) {
				buffer := make([]byte, 64<<10)
				for pb.Next() {
					obj, err := s.GetStream(b.Context(), "key", storage.GetOptions{})
					if err != nil {
						b.Fatal(err)
					}
					if n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{obj.Body}, buffer); n != int64(size) || err != nil {
						b.Fatal(n, err)
					}
					_ = obj.Body.Close()
				}
			})
		})
	}
}

// loopback returns a store whose every answer is an object of size bytes.
func loopback(b *testing.B, size int) *Storage {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	answer := []byte(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nContent-Type: application/octet-stream\r\n"+
		"Etag: \"5d41402abc4b2a76b9719d911017c592\"\r\nLast-Modified: Tue, 01 Dec 2026 00:00:00 GMT\r\nX-Amz-Request-Id: 1\r\n"+
		"Date: Tue, 01 Dec 2026 00:00:00 GMT\r\nX-Amz-Meta-Storagemux-Version: 0123456789abcdef-01234567\r\n\r\n%s", size, strings.Repeat("x", size)))
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					line, err := in.ReadSlice('\n')
					if err != nil {
						return
					}
					if len(line) == 2 {
						if _, err := c.Write(answer); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	s, err := New(Config{Endpoint: "http://" + l.Addr().String(), Bucket: "bucket", Auth: Auth{Type: Static, AccessKeyID: "key", SecretAccessKey: "secret"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

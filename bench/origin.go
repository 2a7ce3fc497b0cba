package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/proxy/s3"
	"github.com/suaveplan/storagemux/internal/storage"
)

// serveOrigin is one of the stores that this program is itself: "light" answers
// from memory and looks at nothing, so that it is not the limit; "verify" checks
// every signature and checksum as a real store does, and keeps nothing.
func serveOrigin(kind, address string) error {
	var handler http.Handler
	switch kind {
	case "light":
		handler = light{}
	case "verify":
		front := s3.New(s3.Options{})
		front.SetConfig(&s3.Config{Storage: discard{}, Bucket: bucket, Auth: s3.AuthNone})
		handler = front
	default:
		return fmt.Errorf("there is no origin %q; there are light and verify", kind)
	}
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}

// light has an object of n bytes under every key that ends in -n. Those called o-n
// are in its listings, as far as programs want one before they ask for a key.
type light struct{}

func (light) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header["Etag"] = []string{`"d41d8cd98f00b204e9800998ecf8427e"`}
	if r.Method == http.MethodPut {
		if strings.Contains(r.URL.Path, "/"+storage.ReservedPrefix) {
			// What finds out here whether checksums are verified is to go on as
			// with a store that does.
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "<Error><Code>BadDigest</Code></Error>")
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
		return
	}
	switch r.URL.Path {
	case "/":
		_, _ = io.WriteString(w, `<ListAllMyBucketsResult><Buckets><Bucket><Name>`+bucket+`</Name></Bucket></Buckets></ListAllMyBucketsResult>`)
		return
	case "/" + bucket, "/" + bucket + "/":
		_, _ = io.WriteString(w, lightListing)
		return
	}
	size, err := strconv.ParseInt(r.URL.Path[strings.LastIndexByte(r.URL.Path, '-')+1:], 10, 64)
	if err != nil || size < 0 || size > 1<<30 {
		http.Error(w, "no such key", http.StatusNotFound)
		return
	}
	header["Content-Type"] = []string{"application/octet-stream"}
	header["Last-Modified"] = []string{"Mon, 30 Nov 2026 12:00:00 GMT"}
	header["Content-Length"] = []string{strconv.FormatInt(size, 10)}
	if r.Method == http.MethodHead {
		return
	}
	for size > 0 {
		n := min(size, int64(len(block)))
		if _, err := w.Write(block[:n]); err != nil {
			return
		}
		size -= n
	}
}

var lightListing = func() string {
	text := `<ListBucketResult><Name>` + bucket + `</Name><IsTruncated>false</IsTruncated>`
	for _, size := range []int64{1 << 10, 64 << 10, 1 << 20, 8 << 20, 256 << 20} {
		text += fmt.Sprintf(`<Contents><Key>%s</Key><Size>%d</Size><LastModified>2026-11-30T12:00:00.000Z</LastModified><ETag>&quot;d41d8cd98f00b204e9800998ecf8427e&quot;</ETag></Contents>`, keyOf(size), size)
	}
	return text + `</ListBucketResult>`
}()

var block = noise(256 << 10)

// discard is a store that takes every object and has none.
type discard struct{ storage.Storage }

func (discard) Capabilities() storage.Capabilities {
	return storage.Capabilities{Range: true, Metadata: true, Identity: storage.IdentityNative}
}

func (discard) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	r, err := storage.OpenBody(ctx, "SetStream", body, opts.Checksums)
	if err != nil {
		return storage.Info{}, err
	}
	defer r.Close()
	n, err := io.Copy(io.Discard, r)
	return storage.Info{Key: key, Size: n, ModTime: time.Now(), ETag: "d41d8cd98f00b204e9800998ecf8427e"}, err
}

func (discard) Stat(_ context.Context, key string, _ storage.StatOptions) (storage.Info, error) {
	return storage.Info{}, storage.Errorf(storage.CodeKeyNotFound, "Stat", "nothing is kept under %q", key)
}

func (discard) GetStream(_ context.Context, key string, _ storage.GetOptions) (*storage.Object, error) {
	return nil, storage.Errorf(storage.CodeKeyNotFound, "GetStream", "nothing is kept under %q", key)
}

func (discard) List(context.Context, storage.ListOptions) (storage.ListPage, error) {
	return storage.ListPage{}, nil
}

func (discard) Delete(context.Context, string) error { return nil }

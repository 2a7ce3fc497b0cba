package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/s3"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

// faultyStore is a bucket of an S3 service behind two proxies: one that spoils
// connections and one that spoils answers. direct goes past both.
type faultyStore struct {
	bucket string
	wire   *toxiproxy.Proxy
	spoils atomic.Pointer[spoil]
	direct *s3.Storage
}

// quietToxics silences toxics, which log for themselves.
var quietToxics sync.Once

// spoil is what the proxy of answers does.
type spoil struct {
	// status is answered in the store's place.
	status     int
	retryAfter string
	// Of the answer to a GET, breakAt is where the connection is cut and flip
	// the byte that is changed; both count from 1.
	breakAt, flip int64
}

func newFaultyStore(t *testing.T, server *servers.S3) *faultyStore {
	t.Helper()
	f := &faultyStore{bucket: server.Bucket(t)}
	var err error
	f.direct, err = s3.New(s3.Config{
		Endpoint: server.Endpoint, Region: server.Region, Bucket: f.bucket,
		Auth: s3.Auth{Type: s3.Static, AccessKeyID: server.AccessKeyID, SecretAccessKey: server.SecretAccessKey},
	})
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	web := httptest.NewUnstartedServer(f.answers(target, transport))
	web.Config.ErrorLog = nil
	web.Start()
	nobody := zerolog.New(io.Discard)
	quietToxics.Do(func() { zerolog.SetGlobalLevel(zerolog.Disabled) })
	f.wire = toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), nobody), f.bucket, "127.0.0.1:0", strings.TrimPrefix(web.URL, "http://"))
	if err := f.wire.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.wire.Stop()
		web.CloseClientConnections()
		web.Close()
		transport.CloseIdleConnections()
		_ = f.direct.Close()
	})
	return f
}

// answers is the proxy of answers.
func (f *faultyStore) answers(target *url.URL, transport http.RoundTripper) http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // which is signed
		},
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ModifyResponse: func(r *http.Response) error {
			if s := f.spoils.Load(); s != nil && r.Request.Method == http.MethodGet && r.StatusCode < 300 {
				r.Body = &spoiled{ReadCloser: r.Body, spoil: s}
			}
			return nil
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := f.spoils.Load()
		if s == nil || s.status == 0 {
			forward.ServeHTTP(w, r)
			return
		}
		if s.retryAfter != "" {
			w.Header().Set("Retry-After", s.retryAfter)
		}
		w.WriteHeader(s.status)
		fmt.Fprintf(w, "<Error><Code>Spoiled%d</Code></Error>", s.status)
	})
}

// spoiled is the body of an answer.
type spoiled struct {
	io.ReadCloser
	spoil *spoil
	read  int64
}

func (s *spoiled) Read(p []byte) (int, error) {
	if s.spoil.breakAt > 0 {
		left := s.spoil.breakAt - 1 - s.read
		if left <= 0 {
			panic(http.ErrAbortHandler)
		}
		p = p[:min(int64(len(p)), left)]
	}
	n, err := s.ReadCloser.Read(p)
	if at := s.spoil.flip - 1 - s.read; at >= 0 && at < int64(n) {
		p[at] ^= 0x40
	}
	s.read += int64(n)
	return n, err
}

// put stores an object past the proxies.
func (f *faultyStore) put(t *testing.T, key string, data []byte) {
	t.Helper()
	sums := storage.Checksums{CRC32C: crc32c(data)}
	if _, err := storage.Set(t.Context(), f.direct, key, data, storage.SetOptions{Checksums: sums}); err != nil {
		t.Fatal(err)
	}
}

// backend is the store as a document names it.
func (f *faultyStore) backend(name string, server *servers.S3) muxconfig.Backend {
	return muxconfig.Backend{
		Name: name, UID: "uid-" + name, MaxInFlight: 512,
		S3: &muxconfig.S3{
			Endpoint: "http://" + f.wire.Listen, Region: server.Region, Bucket: f.bucket, AddressingStyle: "Path",
			Auth: muxconfig.S3Auth{Type: muxconfig.AuthSecret, AccessKeyID: server.AccessKeyID, SecretAccessKey: muxconfig.Secret(server.SecretAccessKey)},
		},
	}
}

// fault is one way for a store to fail.
type fault struct {
	name string
	// toxic is one of toxiproxy's, as its API takes it; refuse closes the port.
	toxic  string
	refuse bool
	spoil  *spoil
	// mute: nothing that the store says of any request arrives.
	mute bool
}

func (f *faultyStore) begin(t *testing.T, one fault) {
	t.Helper()
	f.spoils.Store(one.spoil)
	if one.refuse {
		f.wire.Stop()
	}
	if one.toxic != "" {
		if _, err := f.wire.Toxics.AddToxicJson(strings.NewReader(one.toxic)); err != nil {
			t.Fatalf("%s: %v", one.name, err)
		}
	}
}

// end heals the store. Connections that hang end with the port, which then
// opens anew.
func (f *faultyStore) end(t *testing.T) {
	t.Helper()
	f.spoils.Store(nil)
	f.wire.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	f.wire.Toxics.ResetToxics(ctx)
	if err := f.wire.Start(); err != nil {
		t.Fatal(err)
	}
}

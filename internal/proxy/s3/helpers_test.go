package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

const (
	testID     = "AKIDEXAMPLE"
	testSecret = "secret"
	testBucket = "assets"
)

// front is a server over a storage, and a client that signs with the AWS signer.
type front struct {
	t       testing.TB
	handler *Handler
	server  *httptest.Server
	store   storage.Storage
	metrics *recordedMetrics
}

type recordedMetrics struct {
	mu    sync.Mutex
	stats []RequestStats
}

func (m *recordedMetrics) RequestFinished(s RequestStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats = append(m.stats, s)
}

func (m *recordedMetrics) last() RequestStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.stats) == 0 {
		return RequestStats{}
	}
	return m.stats[len(m.stats)-1]
}

// lastStats waits for the requests that run, whose clients may have their answer
// already.
func (f *front) lastStats() RequestStats {
	for f.handler.InFlight() > 0 {
		runtime.Gosched()
	}
	return f.metrics.last()
}

func testConfig(store storage.Storage) *Config {
	return &Config{
		Storage: store, Bucket: testBucket, ServeBackendHeader: true,
		Keys: sigv4.NewKeyring(sigv4.Credentials{AccessKeyID: "OLD", SecretAccessKey: "old"},
			sigv4.Credentials{AccessKeyID: testID, SecretAccessKey: testSecret}),
	}
}

func newFront(t testing.TB, store storage.Storage, change ...func(*Config)) *front {
	t.Helper()
	if store == nil {
		store = memory.New(0)
	}
	f := &front{t: t, store: store, metrics: &recordedMetrics{}}
	f.handler = New(Options{Metrics: f.metrics})
	config := testConfig(store)
	for _, c := range change {
		c(config)
	}
	f.handler.SetConfig(config)
	f.server = httptest.NewServer(f.handler)
	t.Cleanup(f.server.Close)
	return f
}

// answered is a response with its body read.
type answered struct {
	*http.Response
	body []byte
	// readErr is what broke the body.
	readErr error
}

// code returns S3's code in an error answer.
func (a answered) code() string {
	var e struct{ Code, RequestId, Resource string }
	if err := xml.Unmarshal(a.body, &e); err != nil {
		return ""
	}
	return e.Code
}

func (f *front) request(method, path string, body []byte, headers ...string) *http.Request {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), method, f.server.URL+path, bytes.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// sign signs r with a hash of body, unless it says itself what its body is.
func (f *front) sign(r *http.Request, body []byte) *http.Request {
	f.t.Helper()
	hash := r.Header.Get("X-Amz-Content-Sha256")
	if hash == "" {
		sum := sha256.Sum256(body)
		hash = hex.EncodeToString(sum[:])
		r.Header.Set("X-Amz-Content-Sha256", hash)
	}
	signer := awsv4.NewSigner(func(o *awsv4.SignerOptions) { o.DisableURIPathEscaping = true })
	err := signer.SignHTTP(context.Background(), aws.Credentials{AccessKeyID: testID, SecretAccessKey: testSecret}, r, hash, "s3", "us-east-1", time.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *front) send(r *http.Request) answered {
	f.t.Helper()
	response, err := f.server.Client().Do(r)
	if err != nil {
		f.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answered{response, body, err}
}

// do signs and sends a request.
func (f *front) do(method, path string, body []byte, headers ...string) answered {
	f.t.Helper()
	return f.send(f.sign(f.request(method, path, body, headers...), body))
}

// want is do with the expectation of a status.
func (f *front) want(status int, method, path string, body []byte, headers ...string) answered {
	f.t.Helper()
	a := f.do(method, path, body, headers...)
	if a.StatusCode != status {
		f.t.Fatalf("%s %s: status %d, want %d: %s", method, path, a.StatusCode, status, a.body)
	}
	return a
}

func (f *front) refused(status int, code, method, path string, body []byte, headers ...string) answered {
	f.t.Helper()
	a := f.do(method, path, body, headers...)
	if a.StatusCode != status || a.code() != code {
		f.t.Errorf("%s %s: %d %s, want %d %s: %s", method, path, a.StatusCode, a.code(), status, code, a.body)
	}
	return a
}

// stored returns what is under key, or nil.
func (f *front) stored(key string) []byte {
	f.t.Helper()
	data, _, err := storage.Get(f.t.Context(), f.store, key)
	if storage.CodeOf(err) == storage.CodeKeyNotFound {
		return nil
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return data
}

func content(n int) []byte {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = random.Read(b)
	return b
}

// put stores directly, past the front.
func (f *front) put(key string, data []byte, options storage.SetOptions) storage.Info {
	f.t.Helper()
	info, err := storage.Set(f.t.Context(), f.store, key, data, options)
	if err != nil {
		f.t.Fatal(err)
	}
	return info
}

// override is a storage some of whose operations are replaced.
type override struct {
	storage.Storage
	get          func(context.Context, string, storage.GetOptions) (*storage.Object, error)
	set          func(context.Context, string, storage.Body, storage.SetOptions) (storage.Info, error)
	stat         func(context.Context, string, storage.StatOptions) (storage.Info, error)
	list         func(context.Context, storage.ListOptions) (storage.ListPage, error)
	remove       func(context.Context, string) error
	capabilities *storage.Capabilities
}

func (o override) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	if o.get != nil {
		return o.get(ctx, key, opts)
	}
	return o.Storage.GetStream(ctx, key, opts)
}

func (o override) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	if o.set != nil {
		return o.set(ctx, key, body, opts)
	}
	return o.Storage.SetStream(ctx, key, body, opts)
}

func (o override) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	if o.stat != nil {
		return o.stat(ctx, key, opts)
	}
	return o.Storage.Stat(ctx, key, opts)
}

func (o override) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	if o.list != nil {
		return o.list(ctx, opts)
	}
	return o.Storage.List(ctx, opts)
}

func (o override) GetTags(ctx context.Context, key string) (map[string]string, error) {
	if !o.Capabilities().Tagging {
		return nil, storage.Errorf(storage.CodeUnsupported, "GetTags", "none")
	}
	return storage.GetTags(ctx, o.Storage, key)
}

func (o override) SetTags(ctx context.Context, key string, tags map[string]string) error {
	return storage.SetTags(ctx, o.Storage, key, tags)
}

func (o override) Delete(ctx context.Context, key string) error {
	if o.remove != nil {
		return o.remove(ctx, key)
	}
	return o.Storage.Delete(ctx, key)
}

func (o override) Capabilities() storage.Capabilities {
	if o.capabilities != nil {
		return *o.capabilities
	}
	return o.Storage.Capabilities()
}

func path(key string) string { return fmt.Sprintf("/%s/%s", testBucket, sigv4.EscapePath(key)) }

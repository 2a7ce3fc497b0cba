package s3

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Storage is a store over a bucket. Other credentials are another Storage:
// requests that run finish on the one that they began on.
type Storage struct {
	target     target
	signer     signer
	clock      clock
	keys       provider
	transport  *http.Transport
	background sync.WaitGroup // aborts of uploads
}

var (
	_ storage.Storage = (*Storage)(nil)
	_ storage.Checker = (*Storage)(nil)
	_ io.Closer       = (*Storage)(nil)
)

// New returns a store for cfg. It does no I/O.
func New(cfg Config) (*Storage, error) {
	t, err := cfg.target()
	if err != nil {
		return nil, err
	}
	roots, err := cfg.roots()
	if err != nil {
		return nil, err
	}
	connections := cfg.MaxInFlight
	if connections <= 0 {
		connections = 512
	}
	s := &Storage{target: t, signer: signer{region: t.region}}
	s.transport = &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(0)},
		TLSHandshakeTimeout:   5 * time.Second,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   connections,
		IdleConnTimeout:       50 * time.Second,
		DisableCompression:    true,
		ReadBufferSize:        32 << 10,
		WriteBufferSize:       32 << 10,
	}
	if s.keys, err = cfg.Auth.provider(t.region, s.transport); err != nil {
		return nil, err
	}
	return s, nil
}

// Close waits for the removal of parts of failed uploads and closes idle
// connections. Requests that run are not disturbed.
func (s *Storage) Close() error {
	s.background.Wait()
	s.transport.CloseIdleConnections()
	return nil
}

// Capabilities implements storage.Storage.
func (s *Storage) Capabilities() storage.Capabilities {
	return storage.Capabilities{
		Range: true, Metadata: true, ConditionalWrite: true, ListOrdered: true, Identity: storage.IdentityNative,
	}
}

// Check implements storage.Checker. It asks for one byte of a key that is
// never there: unlike a HEAD, the answer tells a missing key from a missing bucket.
func (s *Storage) Check(ctx context.Context) error {
	obj, err := s.get(ctx, "Check", storage.ProbeKey, storage.GetOptions{Range: &storage.Range{First: 0, Last: 0}})
	switch storage.CodeOf(err) {
	case storage.CodeKeyNotFound, storage.CodeInvalidRange:
		return nil
	case "":
		if err == nil {
			return obj.Body.Close()
		}
	}
	return err
}

// validate is ValidateKey for keys that get the configured prefix.
func (s *Storage) validate(op, key string) error {
	if err := storage.ValidateKey(key); err != nil {
		return err
	}
	if n := len(s.target.prefix) + len(key); n > storage.MaxKeyBytes {
		return storage.Errorf(storage.CodeInvalidKey, op, "with the prefix %q the key has %d bytes and must have at most %d", s.target.prefix, n, storage.MaxKeyBytes)
	}
	return nil
}

// GetStream implements storage.Storage.
func (s *Storage) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	return s.get(ctx, "GetStream", key, opts)
}

func (s *Storage) get(ctx context.Context, op, key string, opts storage.GetOptions) (*storage.Object, error) {
	if err := s.validate(op, key); err != nil {
		return nil, err
	}
	header := make(http.Header, 10)
	if opts.Range != nil {
		header["Range"] = []string{opts.Range.String()}
	} else {
		header["X-Amz-Checksum-Mode"] = checksumMode
	}
	conditions, err := s.narrow(ctx, key, opts.Conditions)
	if err != nil {
		return nil, err
	}
	addConditions(header, conditions)
	resp, err := s.send(ctx, &request{op: op, method: http.MethodGet, key: key, header: header})
	if err != nil {
		return nil, err
	}
	obj, err := objectOf(op, key, opts.Range, resp)
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	obj.Body = &body{ctx: ctx, key: key, source: resp.Body, rest: obj.Length}
	return obj, nil
}

// narrow returns c without lists of tags, which few services understand: it
// looks which tag the object has and leaves that one to be matched.
func (s *Storage) narrow(ctx context.Context, key string, c storage.Conditions) (storage.Conditions, error) {
	if len(c.IfMatch) <= 1 && len(c.IfNoneMatch) <= 1 {
		return c, nil
	}
	info, err := s.Stat(ctx, key, storage.StatOptions{})
	if err != nil {
		return c, err
	}
	if err := c.CheckRead(info); err != nil {
		return c, err
	}
	return storage.Conditions{IfMatch: []string{info.ETag}}, nil
}

var checksumMode = []string{"ENABLED"}

// objectOf returns what resp says of its body.
func objectOf(op, key string, asked *storage.Range, resp *http.Response) (*storage.Object, error) {
	size := resp.ContentLength
	if size < 0 {
		return nil, storage.Errorf(storage.CodeUnavailable, op, "the store gave no length for %q", key)
	}
	obj := &storage.Object{Length: size}
	switch {
	case resp.StatusCode == http.StatusPartialContent:
		first, last, total, ok := contentRange(resp.Header.Get("Content-Range"))
		if !ok || asked == nil || last-first+1 != size {
			return nil, storage.Errorf(storage.CodeUnavailable, op, "the store answered with %q, which is not what was asked for of %q", resp.Header.Get("Content-Range"), key)
		}
		obj.Offset, size = first, total
	case asked != nil && size == 0:
		_, _, err := asked.Resolve(0)
		return nil, err
	case asked != nil:
		return nil, storage.Errorf(storage.CodeUnavailable, op, "the store ignored that %s of %q was asked for", asked, key)
	}
	obj.Info = infoOf(key, size, resp.Header)
	return obj, nil
}

// Stat implements storage.Storage.
func (s *Storage) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	const op = "Stat"
	if err := s.validate(op, key); err != nil {
		return storage.Info{}, err
	}
	header := make(http.Header, 10)
	header["X-Amz-Checksum-Mode"] = checksumMode
	conditions, err := s.narrow(ctx, key, opts.Conditions)
	if err != nil {
		return storage.Info{}, err
	}
	addConditions(header, conditions)
	resp, err := s.send(ctx, &request{op: op, method: http.MethodHead, key: key, header: header})
	if err != nil {
		return storage.Info{}, err
	}
	defer resp.Body.Close()
	if resp.ContentLength < 0 {
		return storage.Info{}, storage.Errorf(storage.CodeUnavailable, op, "the store gave no length for %q", key)
	}
	return infoOf(key, resp.ContentLength, resp.Header), nil
}

// Delete implements storage.Storage.
func (s *Storage) Delete(ctx context.Context, key string) error {
	const op = "Delete"
	if err := s.validate(op, key); err != nil {
		return err
	}
	resp, err := s.send(ctx, &request{op: op, method: http.MethodDelete, key: key, write: true})
	if storage.CodeOf(err) == storage.CodeKeyNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	drain(resp)
	return nil
}

// SetPartial implements storage.Storage.
func (s *Storage) SetPartial(_ context.Context, key string, _ int64, _ storage.Body) (storage.Info, error) {
	return storage.Info{}, storage.Errorf(storage.CodeUnsupported, "SetPartial", "an S3 object cannot be written in part: %q", key)
}

// drain reads the little that is left of an answer, so that its connection can
// be used again.
func drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBody)
	_ = resp.Body.Close()
}

// body is the content of an object that is read.
type body struct {
	ctx    context.Context
	key    string
	source io.ReadCloser
	rest   int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.source.Read(p)
	b.rest -= int64(n)
	switch {
	case err == nil:
		return n, nil
	case err == io.EOF && b.rest == 0:
		return n, io.EOF
	case b.ctx.Err() != nil:
		return n, storage.Interrupted(b.ctx, "GetStream", "reading the object")
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, storage.Errorf(storage.CodeUnavailable, "GetStream", "reading %q, with %d bytes to go", b.key, b.rest).WithCause(err)
}

// Close implements io.Closer.
func (b *body) Close() error {
	_ = b.source.Close()
	return nil
}

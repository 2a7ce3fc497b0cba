package swift

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/staged"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// Storage is a store over a container.
type Storage struct {
	*staged.Uploads
	sessions  sessions
	container string
	prefix    string
	transport *wire.Connections
}

var (
	_ storage.Storage   = (*Storage)(nil)
	_ storage.Multipart = (*Storage)(nil)
	_ storage.Checker   = (*Storage)(nil)
	_ io.Closer         = (*Storage)(nil)
)

// New returns a store for cfg. It does no I/O.
func New(cfg Config) (*Storage, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	transport, err := wire.Transport(cfg.CABundle, cfg.MaxInFlight)
	if err != nil {
		return nil, err
	}
	s := &Storage{
		sessions:  sessions{cfg: cfg, transport: transport, asking: make(chan struct{}, 1)},
		container: cfg.Container, prefix: cfg.Prefix, transport: transport,
	}
	s.Uploads = staged.New(s, s.named)
	return s, nil
}

// Close closes idle connections. Requests that run are not disturbed.
func (s *Storage) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// Capabilities implements storage.Storage. Entity tags are the MD5 of the
// content. Of conditions, Swift knows for writes only If-None-Match: *, and that
// not against another write at the same time.
func (s *Storage) Capabilities() storage.Capabilities {
	return storage.Capabilities{Range: true, Metadata: true, ListOrdered: true, Identity: storage.IdentityNative}
}

// Check implements storage.Checker: the identity service gives a token, and with
// it the container can be seen.
func (s *Storage) Check(ctx context.Context) error {
	resp, err := s.send(ctx, &request{op: "Check", method: http.MethodHead})
	if err != nil {
		return err
	}
	wire.Drain(resp)
	return nil
}

// request is one request about an object, or about the container if the key is
// empty.
type request struct {
	op, method, key string
	query           url.Values
	header          http.Header
	content         *wire.Content
	source          io.Reader
	write           bool
}

// maxName is the most bytes that an object's name may have.
const maxName = 1024

// send returns an answer of less than 300, or an error. When the token is not
// taken any more, it asks for another one and tries once more, unless something
// of a body that cannot be had again is gone.
func (s *Storage) send(ctx context.Context, r *request) (*http.Response, error) {
	now, err := s.sessions.get(ctx, r.op, nil)
	for first := true; err == nil; first = false {
		var resp *http.Response
		if resp, err = s.sendOnce(ctx, r, now); err != nil {
			return nil, err
		}
		if resp.StatusCode < 300 {
			return resp, nil
		}
		wire.Drain(resp)
		if resp.StatusCode != http.StatusUnauthorized || !first || !r.again() {
			return nil, answered(r, resp)
		}
		now, err = s.sessions.get(ctx, r.op, now)
	}
	return nil, err
}

// again reports whether r can be sent once more, and makes it so.
func (r *request) again() bool {
	if r.content == nil || r.content.Length == 0 {
		return true
	}
	r.content.Wait()
	if r.content.Body != nil {
		return r.content.Body.BytesRead() == 0
	}
	seeker, ok := r.source.(io.Seeker)
	if !ok {
		return false
	}
	_, err := seeker.Seek(0, io.SeekStart)
	return err == nil
}

func answered(r *request, resp *http.Response) error {
	code := wire.CodeOfStatus(resp.StatusCode, r.key != "")
	switch {
	case resp.StatusCode == http.StatusNotFound && r.method == http.MethodPut:
		code = storage.CodeBucketNotFound
	case resp.StatusCode == http.StatusUnprocessableEntity:
		code = storage.CodeUnavailable // what came was not what was sent
	case resp.StatusCode == 498: // of the rate limiting middleware
		code = storage.CodeThrottled
	}
	return wire.Answered(code, r.op, r.key, resp.StatusCode, resp.Header, "")
}

func (s *Storage) sendOnce(ctx context.Context, r *request, now *session) (*http.Response, error) {
	u := *now.base
	u.Path += "/" + s.container
	raw := wire.AppendEscaped(nil, now.base.Path, true)
	raw = wire.AppendEscaped(append(raw, '/'), s.container, false)
	if r.key != "" {
		u.Path += "/" + s.prefix + r.key
		raw = wire.AppendEscaped(append(raw, '/'), s.prefix+r.key, true)
	}
	u.RawPath = string(raw)
	u.RawQuery = r.query.Encode()
	header := make(http.Header, len(r.header)+2)
	for name, values := range r.header {
		header[name] = values
	}
	header["X-Auth-Token"] = now.token
	header["User-Agent"] = userAgent
	req := (&http.Request{
		// Servers that answer 204 to this HEAD end it like a chunked body, which the
		// next request on the connection would meet in place of its answer.
		Close:  r.key == "" && r.method == http.MethodHead,
		Method: r.method, URL: &u, Host: u.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if r.content != nil && r.content.Length != 0 {
		req.ContentLength = r.content.Length
		req.Body = r.content.Reader(r.source)
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return nil, wire.Unanswered(ctx, r.op, r.key, err, r.write && r.content.Sent())
	}
	return resp, nil
}

var userAgent = []string{"storagemux"}

// named returns INVALID_KEY for what cannot be the name of an object.
func (s *Storage) named(op, key string) error {
	if err := storage.ValidateKey(key); err != nil {
		return err
	}
	if len(s.prefix)+len(key) > maxName {
		return storage.Errorf(storage.CodeInvalidKey, op, "the prefix and the key together must have at most %d bytes", maxName)
	}
	return nil
}

// GetStream implements storage.Storage.
func (s *Storage) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	const op = "GetStream"
	if err := s.named(op, key); err != nil {
		return nil, err
	}
	header := make(http.Header, 3)
	if opts.Range != nil {
		header["Range"] = []string{opts.Range.String()}
	}
	resp, err := s.send(ctx, &request{op: op, method: http.MethodGet, key: key, header: header})
	if err != nil {
		return nil, err
	}
	obj, err := wire.Object(ctx, op, key, opts.Range, resp)
	if err != nil {
		return nil, err
	}
	obj.Info = infoOf(key, obj.Size, resp.Header)
	if err := opts.Conditions.CheckRead(obj.Info); err != nil {
		_ = obj.Body.Close()
		return nil, err
	}
	return obj, nil
}

// Stat implements storage.Storage.
func (s *Storage) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	const op = "Stat"
	if err := s.named(op, key); err != nil {
		return storage.Info{}, err
	}
	resp, err := s.send(ctx, &request{op: op, method: http.MethodHead, key: key})
	if err != nil {
		return storage.Info{}, err
	}
	wire.Drain(resp)
	if resp.ContentLength < 0 {
		return storage.Info{}, storage.Errorf(storage.CodeUnavailable, op, "the store gave no length for %q", key)
	}
	info := infoOf(key, resp.ContentLength, resp.Header)
	return info, opts.Conditions.CheckRead(info)
}

// Delete implements storage.Storage.
func (s *Storage) Delete(ctx context.Context, key string) error {
	const op = "Delete"
	if err := s.named(op, key); err != nil {
		return err
	}
	resp, err := s.send(ctx, &request{op: op, method: http.MethodDelete, key: key, write: true})
	if storage.CodeOf(err) == storage.CodeKeyNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	wire.Drain(resp)
	return nil
}

// SetPartial implements storage.Storage.
func (s *Storage) SetPartial(_ context.Context, key string, _ int64, _ storage.Body) (storage.Info, error) {
	return storage.Info{}, storage.Errorf(storage.CodeUnsupported, "SetPartial", "objects of Swift cannot be written in part: %q", key)
}

// metaHeader begins the headers of user metadata.
const metaHeader = "X-Object-Meta-"

// names keeps what the gateway interface of Swift would lose: it takes "_" for
// "-".
var names = wire.Names{Mark: "x--", Escape: '-', Kept: func(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
}}

// headerOf returns what is stored with an object.
func headerOf(op string, opts storage.SetOptions) (http.Header, error) {
	header := make(http.Header, 8)
	h := opts.Headers
	for name, value := range map[string]string{
		"Content-Type": h.ContentType, "Cache-Control": h.CacheControl, "Content-Disposition": h.ContentDisposition,
		"Content-Encoding": h.ContentEncoding, "Content-Language": h.ContentLanguage, "Expires": h.Expires,
	} {
		if value != "" {
			header[name] = []string{value}
		}
	}
	if h.ContentType == "" {
		header["Content-Type"] = []string{"application/octet-stream"} // else it guesses by the name
	}
	for name, value := range opts.Metadata {
		if !utf8.ValidString(value) || strings.ContainsAny(value, "\r\n\x00") {
			return nil, storage.Errorf(storage.CodeRejected, op, "metadata must be UTF-8 in one line: %s", name)
		}
		header[http.CanonicalHeaderKey(metaHeader+names.To(name))] = []string{value}
	}
	return header, nil
}

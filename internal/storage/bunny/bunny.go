package bunny

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/scratch"
	"github.com/suaveplan/storagemux/internal/storage/staged"
	"github.com/suaveplan/storagemux/internal/storage/tree"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// Storage is a store over a storage zone.
type Storage struct {
	*staged.Uploads
	base      *url.URL
	key       []string
	transport *wire.Connections
	scratch   scratch.Space
}

var (
	_ storage.Storage    = (*Storage)(nil)
	_ storage.Multipart  = (*Storage)(nil)
	_ storage.Checker    = (*Storage)(nil)
	_ staged.TreeRemover = (*Storage)(nil)
	_ io.Closer          = (*Storage)(nil)
)

// New returns a store for cfg. It does no I/O.
func New(cfg Config) (*Storage, error) {
	base, err := cfg.base()
	if err != nil {
		return nil, err
	}
	transport, err := wire.Transport(cfg.CABundle, cfg.MaxInFlight)
	if err != nil {
		return nil, err
	}
	s := &Storage{base: base, key: []string{cfg.AccessKey}, transport: transport, scratch: cfg.Scratch}
	if s.scratch == nil {
		s.scratch = scratch.Files("", defaultScratch)
	}
	s.Uploads = staged.New(s, writable)
	return s, nil
}

// Close closes idle connections. Requests that run are not disturbed.
func (s *Storage) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// Capabilities implements storage.Storage. The API has no conditions and keeps
// no metadata.
func (s *Storage) Capabilities() storage.Capabilities {
	return storage.Capabilities{Range: true, ListOrdered: true, Identity: storage.IdentityWeak}
}

// Check implements storage.Checker: the server answers and accepts the access
// key for the zone.
func (s *Storage) Check(ctx context.Context) error {
	return storage.Probe(ctx, s, storage.ProbeKey)
}

// request is one request to the API.
type request struct {
	op, method string
	// path is a key, or one with a slash at its end for a folder, or "".
	path    string
	header  http.Header
	content *wire.Content
	source  io.Reader
	write   bool
}

// send returns an answer of less than 300, or an error.
func (s *Storage) send(ctx context.Context, r *request) (*http.Response, error) {
	u := *s.base
	u.Path += r.path
	u.RawPath = string(wire.AppendEscaped(nil, u.Path, true))
	req := (&http.Request{
		Method: r.method, URL: &u, Host: s.base.Host, Header: r.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if req.Header == nil {
		req.Header = make(http.Header, 2)
	}
	req.Header["Accesskey"] = s.key
	req.Header["User-Agent"] = userAgent
	if r.content != nil && r.content.Length != 0 {
		req.ContentLength = r.content.Length
		req.Body = r.content.Reader(r.source)
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return nil, wire.Unanswered(ctx, r.op, r.path, err, r.write && r.content.Sent())
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	wire.Drain(resp)
	return nil, wire.Answered(wire.CodeOfStatus(resp.StatusCode, true), r.op, r.path, resp.StatusCode, resp.Header, "")
}

var userAgent = []string{"storagemux"}

// GetStream implements storage.Storage.
func (s *Storage) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	return s.get(ctx, "GetStream", key, opts)
}

func (s *Storage) get(ctx context.Context, op, key string, opts storage.GetOptions) (*storage.Object, error) {
	if err := readable(op, key); err != nil {
		return nil, err
	}
	header := make(http.Header, 4)
	if opts.Range != nil {
		header["Range"] = []string{opts.Range.String()}
	}
	resp, err := s.send(ctx, &request{op: op, method: http.MethodGet, path: key, header: header})
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

// Stat implements storage.Storage. The API has no HEAD, so that the first byte
// is asked for.
func (s *Storage) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	const op = "Stat"
	obj, err := s.get(ctx, op, key, storage.GetOptions{Range: &storage.Range{First: 0, Last: 0}})
	if code := storage.CodeOf(err); code == storage.CodeInvalidRange || code == storage.CodeUnsupported {
		obj, err = s.get(ctx, op, key, storage.GetOptions{}) // it is empty, or comes whole
	}
	if err != nil {
		return storage.Info{}, err
	}
	if obj.Length <= 1 {
		_, _ = io.Copy(io.Discard, obj.Body) // which leaves the connection for others
	}
	_ = obj.Body.Close()
	return obj.Info, opts.Conditions.CheckRead(obj.Info)
}

// readable returns an error for what can be no object's key.
func readable(op, key string) error {
	if err := storage.ValidateKey(key); err != nil {
		return err
	}
	if !tree.IsPath(key) {
		return storage.Errorf(storage.CodeKeyNotFound, op, "%q is no path", key)
	}
	return nil
}

func infoOf(key string, size int64, h http.Header) storage.Info {
	info := storage.Info{
		Key: key, Size: size, ETag: wire.Weak(h.Get("ETag")),
		Headers: storage.Headers{ContentType: h.Get("Content-Type")},
	}
	if modified, err := http.ParseTime(h.Get("Last-Modified")); err == nil {
		info.ModTime = modified.UTC()
	}
	return info
}

// SetPartial implements storage.Storage.
func (s *Storage) SetPartial(_ context.Context, key string, _ int64, _ storage.Body) (storage.Info, error) {
	return storage.Info{}, storage.Errorf(storage.CodeUnsupported, "SetPartial", "objects of a storage zone cannot be written in part: %q", key)
}

// Delete implements storage.Storage. It looks first whether there is such an
// object: deleting a folder would remove all that is in it.
func (s *Storage) Delete(ctx context.Context, key string) error {
	const op = "Delete"
	_, err := s.Stat(ctx, key, storage.StatOptions{})
	if storage.CodeOf(err) == storage.CodeKeyNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return s.remove(ctx, op, key)
}

// RemoveTree implements staged.TreeRemover: a folder is removed with what is in
// it.
func (s *Storage) RemoveTree(ctx context.Context, prefix string) error {
	return s.remove(ctx, "RemoveTree", prefix)
}

func (s *Storage) remove(ctx context.Context, op, path string) error {
	resp, err := s.send(ctx, &request{op: op, method: http.MethodDelete, path: path, write: true})
	if storage.CodeOf(err) == storage.CodeKeyNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	wire.Drain(resp)
	return nil
}

// maxSegment is the most bytes of one name; servers keep them as file names.
const maxSegment = 255

// writable returns INVALID_KEY for what the API cannot name.
func writable(op, key string) error {
	if err := storage.ValidateKey(key); err != nil {
		return err
	}
	if !tree.IsPath(key) {
		return storage.Errorf(storage.CodeInvalidKey, op, "a key that is a path cannot have an empty segment, nor one of dots: %q", key)
	}
	for segment := range strings.SplitSeq(key, "/") {
		if len(segment) > maxSegment {
			return storage.Errorf(storage.CodeInvalidKey, op, "a segment of a key must have at most %d bytes: %s", maxSegment, strconv.Quote(key))
		}
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r == '\\' || r < ' ' }) {
		return storage.Errorf(storage.CodeInvalidKey, op, "a key must not have a backslash or a control character: %q", key)
	}
	return nil
}

package http

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/staged"
	"github.com/suaveplan/storagemux/internal/storage/tree"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// Storage is a store over a folder of an HTTP server.
type Storage struct {
	*staged.Uploads
	base       *url.URL
	flavor     Flavor
	auth       http.Header
	transport  *wire.Connections
	guard      *Guard
	query      string
	making     chan struct{}  // held by who makes folders
	tmpMade    atomic.Bool    // the folder of temporary files is there
	swept      atomic.Int64   // when temporary files were last looked at, in nanoseconds since 1970
	background sync.WaitGroup // removals of temporary files
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
	if cfg.Flavor != WebDAV && cfg.Flavor != Plain {
		return nil, storage.Errorf(storage.CodeRejected, "New", "the flavor %q is unknown", cfg.Flavor)
	}
	transport, err := wire.Transport(cfg.CABundle, cfg.MaxInFlight)
	if err != nil {
		return nil, err
	}
	if cfg.Guard != nil {
		if err := cfg.Guard.allows(base); err != nil {
			return nil, refused("New", "", err)
		}
		cfg.Guard.protect(transport.Transport)
	}
	s := &Storage{
		base: base, flavor: cfg.Flavor, auth: cfg.Auth.header(), transport: transport,
		guard: cfg.Guard, query: cfg.Query, making: make(chan struct{}, 1),
	}
	s.Uploads = staged.New(s, s.storable)
	return s, nil
}

// Close waits for the removal of temporary files and closes idle connections.
// Requests that run are not disturbed.
func (s *Storage) Close() error {
	s.background.Wait()
	s.transport.CloseIdleConnections()
	return nil
}

// Capabilities implements storage.Storage. Entity tags are those of the server
// and count as weak: the usual servers make them of time and size. For lack of
// strong ones, and since nginx ignores If-None-Match on a PUT, there are no
// conditional writes.
func (s *Storage) Capabilities() storage.Capabilities {
	return storage.Capabilities{Range: true, ListOrdered: s.flavor == WebDAV, Identity: storage.IdentityWeak}
}

// Check implements storage.Checker: the server answers and accepts the
// credentials.
func (s *Storage) Check(ctx context.Context) error {
	return storage.Probe(ctx, s, storage.ProbeKey)
}

// request is one request to the server.
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
	resp, err := s.sendOnce(ctx, r)
	if err != nil || resp.StatusCode < 300 {
		return resp, err
	}
	wire.Drain(resp)
	return nil, wire.Answered(wire.CodeOfStatus(resp.StatusCode, r.path != ""), r.op, r.path, resp.StatusCode, resp.Header, "")
}

// sendOnce returns any answer.
func (s *Storage) sendOnce(ctx context.Context, r *request) (*http.Response, error) {
	req := (&http.Request{
		Method: r.method, URL: s.url(r.path), Host: s.base.Host, Header: r.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}).WithContext(ctx)
	if req.Header == nil {
		req.Header = http.Header{}
	}
	for name, values := range s.auth {
		req.Header[name] = values
	}
	req.Header["User-Agent"] = userAgent
	req.Header[storage.HopHeader] = []string{strconv.Itoa(storage.Hops(ctx) + 1)}
	if r.content != nil && r.content.Length != 0 {
		req.ContentLength = r.content.Length
		req.Body = r.content.Reader(r.source)
	}
	resp, err := s.transport.RoundTrip(req)
	if err == nil && s.guard != nil {
		resp, err = s.follow(req, resp)
	}
	if err != nil {
		if stopped := refused(r.op, r.path, err); stopped != nil {
			return nil, stopped
		}
		return nil, wire.Unanswered(ctx, r.op, r.path, err, r.write && r.content.Sent())
	}
	return resp, nil
}

var userAgent = []string{"storagemux"}

// url returns the address of path, encoded exactly once.
func (s *Storage) url(path string) *url.URL {
	u := *s.base
	u.Path += path
	u.RawPath = string(wire.AppendEscaped(nil, u.Path, true))
	u.RawQuery = s.query
	return &u
}

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
		return nil, s.notAFolder(ctx, op, key, err)
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

// Stat implements storage.Storage. Where the server knows no HEAD, the first
// byte is asked for.
func (s *Storage) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	const op = "Stat"
	if err := readable(op, key); err != nil {
		return storage.Info{}, err
	}
	resp, err := s.sendOnce(ctx, &request{op: op, method: http.MethodHead, path: key})
	if err != nil {
		return storage.Info{}, err
	}
	wire.Drain(resp)
	var info storage.Info
	switch status := resp.StatusCode; {
	case status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented || status < 300 && resp.ContentLength < 0:
		obj, err := s.get(ctx, op, key, storage.GetOptions{Range: &storage.Range{First: 0, Last: 0}})
		if storage.CodeOf(err) == storage.CodeInvalidRange { // an empty object
			obj, err = s.get(ctx, op, key, storage.GetOptions{})
		}
		if err != nil {
			return storage.Info{}, err
		}
		_ = obj.Body.Close()
		info = obj.Info
	case status >= 300:
		err := wire.Answered(wire.CodeOfStatus(status, true), op, key, status, resp.Header, "")
		return storage.Info{}, s.notAFolder(ctx, op, key, err)
	default:
		info = infoOf(key, resp.ContentLength, resp.Header)
	}
	return info, opts.Conditions.CheckRead(info)
}

// notAFolder turns err into KEY_NOT_FOUND if key is a folder, which servers say
// by a redirect or by not allowing the method.
func (s *Storage) notAFolder(ctx context.Context, op, key string, err error) error {
	e, ok := errors.AsType[*storage.Error](err)
	if !ok {
		return err
	}
	folder := false
	switch e.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusPermanentRedirect, http.StatusTemporaryRedirect:
		folder = true
	case http.StatusMethodNotAllowed, http.StatusForbidden:
		if s.flavor == WebDAV {
			entries, perr := s.propfind(ctx, op, key, "0")
			folder = perr == nil && len(entries) > 0 && entries[0].folder
			if slash := strings.LastIndexByte(key, '/'); perr != nil && slash > 0 && s.isFile(ctx, op, key[:slash]) {
				return storage.Errorf(storage.CodeKeyNotFound, op, "%q is below a file", key)
			}
		}
	}
	if folder {
		return storage.Errorf(storage.CodeKeyNotFound, op, "%q is a folder", key)
	}
	return err
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
		Headers: storage.Headers{
			ContentType:     h.Get("Content-Type"),
			CacheControl:    h.Get("Cache-Control"),
			ContentEncoding: h.Get("Content-Encoding"),
			ContentLanguage: h.Get("Content-Language"),
		},
	}
	if modified, err := http.ParseTime(h.Get("Last-Modified")); err == nil {
		info.ModTime = modified.UTC()
	}
	return info
}

// SetPartial implements storage.Storage.
func (s *Storage) SetPartial(_ context.Context, key string, _ int64, _ storage.Body) (storage.Info, error) {
	return storage.Info{}, storage.Errorf(storage.CodeUnsupported, "SetPartial", "files of HTTP servers cannot be written in part: %q", key)
}

// writable returns UNSUPPORTED for plain HTTP.
func (s *Storage) writable(op string) error {
	if s.flavor == WebDAV {
		return nil
	}
	return storage.Errorf(storage.CodeUnsupported, op, "a plain HTTP server can be read only")
}

// storable returns an error if no object can be stored under key.
func (s *Storage) storable(op, key string) error {
	if err := s.writable(op); err != nil {
		return err
	}
	if err := storage.ValidateKey(key); err != nil {
		return err
	}
	if !tree.IsPath(key) {
		return storage.Errorf(storage.CodeInvalidKey, op, "a key that is a path cannot have an empty segment, nor one of dots: %q", key)
	}
	return nil
}

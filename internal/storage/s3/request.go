package s3

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/suaveplan/storagemux/internal/storage"
)

// request is one request to the store.
type request struct {
	op     string
	method string
	// key is the object's key without the configured prefix; empty for the
	// bucket.
	key    string
	query  query
	header http.Header
	// payload is what X-Amz-Content-Sha256 says; "" is that of no content.
	payload string
	content *content
	// write says that without an answer the effect may be there.
	write bool
}

// query is a list of parameters in the order of their names.
type query [][2]string

func (q query) encode() string {
	var text []byte
	for i, parameter := range q {
		if i > 0 {
			text = append(text, '&')
		}
		text = appendEscaped(text, parameter[0], false)
		text = append(text, '=')
		text = appendEscaped(text, parameter[1], false)
	}
	return string(text)
}

// content is the body of a request. open is called once per attempt of the
// transport with the request's signature.
type content struct {
	length int64
	open   func(signature) io.Reader
	// again says that open may be called more than once.
	again bool
	// body, if set, is where the content comes from. Once it was handed out
	// whole the store may have the object, even if what the encoding adds at the
	// end is missing: some servers do without.
	body *storage.Reader

	readers sync.WaitGroup // opened and not closed
	whole   atomic.Bool    // some reader reached its end
}

// sent reports whether the store may have all of the content.
func (c *content) sent() bool {
	return c == nil || c.length == 0 || c.whole.Load() || c.body != nil && c.body.Whole()
}

// reader is a content that the transport reads.
type reader struct {
	io.Reader
	content *content
	rest    int64
	once    sync.Once
}

func (c *content) reader(sig signature) *reader {
	c.readers.Add(1)
	return &reader{Reader: c.open(sig), content: c, rest: c.length}
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.rest -= int64(n); r.rest <= 0 || err == io.EOF {
		r.content.whole.Store(true)
	}
	return n, err
}

// Close implements io.Closer. The transport calls it, at the latest some time
// after its RoundTrip returned.
func (r *reader) Close() error {
	r.once.Do(r.content.readers.Done)
	return nil
}

// send makes one attempt, and a second one if the store refused the first
// because of the time, which it then told. An answer of 300 or more is an
// error.
func (s *Storage) send(ctx context.Context, r *request) (*http.Response, error) {
	resp, err := s.sendOnce(ctx, r)
	if err != nil || resp.StatusCode < 300 {
		return resp, err
	}
	a := s.answer(ctx, r, resp)
	if a.code == clockSkewed && s.clock.adjust(a.header) && (r.content == nil || r.content.again) {
		if resp, err = s.sendOnce(ctx, r); err != nil || resp.StatusCode < 300 {
			return resp, err
		}
		a = s.answer(ctx, r, resp)
	}
	return nil, a.error(r.op, r.key)
}

// answer reads an error. That of a HEAD has no body; where its status does not
// say enough, the first byte is asked for instead.
func (s *Storage) answer(ctx context.Context, r *request, resp *http.Response) answer {
	a := readAnswer(resp)
	if r.method != http.MethodHead || a.status != http.StatusBadRequest && a.status != http.StatusForbidden {
		return a
	}
	header := r.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Range", "bytes=0-0")
	again, err := s.sendOnce(ctx, &request{op: r.op, method: http.MethodGet, key: r.key, query: r.query, header: header})
	if err != nil {
		return a
	}
	if again.StatusCode >= 300 {
		if b := readAnswer(again); b.status == a.status {
			return b
		}
		return a
	}
	_ = again.Body.Close()
	return a
}

// sendOnce makes one attempt and returns any answer.
func (s *Storage) sendOnce(ctx context.Context, r *request) (*http.Response, error) {
	k, err := s.keys(ctx)
	if err != nil {
		if e, ok := err.(*storage.Error); ok {
			e.Op = r.op
		}
		return nil, err
	}
	req := s.build(ctx, r)
	payload := r.payload
	if payload == "" {
		payload = emptyPayload
	}
	sig := s.signer.sign(req, k, payload, s.clock.now())
	if r.content != nil && r.content.length > 0 {
		req.ContentLength = r.content.length
		req.Body = r.content.reader(sig)
		if r.content.again {
			req.GetBody = func() (io.ReadCloser, error) { return r.content.reader(sig), nil }
		}
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return nil, unanswered(ctx, r.op, r.key, err, r.write && r.content.sent())
	}
	return resp, nil
}

func (s *Storage) build(ctx context.Context, r *request) *http.Request {
	u := &url.URL{Scheme: s.target.scheme, Host: s.target.host, RawQuery: r.query.encode()}
	u.Path = s.target.before + "/"
	if r.key != "" {
		u.Path += s.target.prefix + r.key
	}
	u.RawPath = string(appendEscaped(make([]byte, 0, len(u.Path)+16), u.Path, true))
	req := &http.Request{
		Method: r.method, URL: u, Host: u.Host, Header: r.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if req.Header == nil {
		req.Header = make(http.Header, 8)
	}
	req.Header["User-Agent"] = userAgent
	return req.WithContext(ctx)
}

var userAgent = []string{"storagemux"}

package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
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
		text = wire.AppendEscaped(text, parameter[0], false)
		text = append(text, '=')
		text = wire.AppendEscaped(text, parameter[1], false)
	}
	return string(text)
}

// content is the body of a request. open makes its source, for the request's
// signature, once per attempt of the transport.
type content struct {
	wire.Content
	open func(signature) io.Reader
}

func (c *content) sent() bool { return c == nil || c.Sent() }

// send makes one attempt, and a second one if the store refused the first
// because of the time, which it then told. An answer of 300 or more is an
// error.
func (s *Storage) send(ctx context.Context, r *request) (*http.Response, error) {
	resp, err := s.sendOnce(ctx, r)
	if err != nil || resp.StatusCode < 300 {
		return resp, err
	}
	a := s.answer(ctx, r, resp)
	if a.code == clockSkewed && s.clock.adjust(a.header) && (r.content == nil || r.content.Again || r.content.Untouched()) {
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
		if e, ok := errors.AsType[*storage.Error](err); ok {
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
	if r.content != nil && r.content.Length > 0 {
		req.ContentLength = r.content.Length
		req.Body = r.content.Reader(r.content.open(sig))
		if r.content.Again {
			req.GetBody = func() (io.ReadCloser, error) { return r.content.Reader(r.content.open(sig)), nil }
		}
	}
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return nil, wire.Unanswered(ctx, r.op, r.key, err, r.write && r.content.sent())
	}
	return resp, nil
}

func (s *Storage) build(ctx context.Context, r *request) *http.Request {
	u := &url.URL{Scheme: s.target.scheme, Host: s.target.host, RawQuery: r.query.encode()}
	u.Path = s.target.before + "/"
	if r.key != "" {
		u.Path += s.target.prefix + r.key
	}
	u.RawPath = string(wire.AppendEscaped(make([]byte, 0, len(u.Path)+16), u.Path, true))
	req := &http.Request{
		Method: r.method, URL: u, Host: u.Host, Header: r.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if req.Header == nil {
		req.Header = make(http.Header, 8)
	}
	req.Header["User-Agent"] = userAgent
	req.Header[storage.HopHeader] = []string{strconv.Itoa(storage.Hops(ctx) + 1)}
	return req.WithContext(ctx)
}

var userAgent = []string{"storagemux"}

// getXML asks about key, or about the bucket if key is empty, and reads the
// answer into v.
func (s *Storage) getXML(ctx context.Context, op, key string, q query, v any) error {
	resp, err := s.send(ctx, &request{op: op, method: http.MethodGet, key: key, query: q})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxListBody))
	if err != nil {
		return wire.Unanswered(ctx, op, key, err, false)
	}
	if err := xml.Unmarshal(data, v); err != nil {
		return storage.Errorf(storage.CodeUnavailable, op, "reading the store's answer").WithCause(err)
	}
	return nil
}

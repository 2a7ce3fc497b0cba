package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"
)

// The credentials of every store and front of a run.
const (
	accessKey = "benchkey"
	secretKey = "benchsecret"
	region    = "us-east-1"
	bucket    = "objects"
)

// work is one kind of request.
type work struct {
	// op is GET, HEAD, PUT, LIST or RANGE.
	op   string
	size int64
	// hashed: a PUT carries the SHA-256 of its body; else the body is unsigned.
	hashed bool
	conns  int
	// rate is how many requests a second begin, whatever became of those
	// before; 0 lets each connection begin one when the last has ended.
	rate int
}

func (w work) String() string {
	text := w.op
	if w.size > 0 {
		text += " " + sizeName(w.size)
	}
	if w.hashed {
		text += " sha256"
	}
	if w.rate > 0 {
		return fmt.Sprintf("%s, %d/s", text, w.rate)
	}
	return fmt.Sprintf("%s, %d conns", text, w.conns)
}

func sizeName(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

func keyOf(size int64) string { return fmt.Sprintf("o-%d", size) }

// sample is what a load of one round came to.
type sample struct {
	requests, failures int64
	bytes              int64
	took               time.Duration
	latency            histogram
	cpu                time.Duration
	memory             int64
}

func (s *sample) perSecond() float64 { return float64(s.requests) / s.took.Seconds() }

// histogram counts latencies in buckets that are 2 % wide, from 1 µs on.
type histogram struct{ counts [1200]atomic.Int64 }

func (h *histogram) add(d time.Duration) {
	at := int(math.Log(max(1, float64(d.Nanoseconds())/1e3)) / math.Log(1.02))
	h.counts[min(at, len(h.counts)-1)].Add(1)
}

// quantile returns the latency below which the share q of requests was.
func (h *histogram) quantile(q float64) time.Duration {
	var all int64
	for i := range h.counts {
		all += h.counts[i].Load()
	}
	left := int64(math.Ceil(q * float64(all)))
	for i := range h.counts {
		if left -= h.counts[i].Load(); left <= 0 {
			return time.Duration(math.Pow(1.02, float64(i)+0.5) * 1e3)
		}
	}
	return 0
}

// signed returns the head of a request, signed for address.
func signed(method, address, target, query string, header http.Header, body []byte, hashed bool) ([]byte, error) {
	url := "http://" + address + target
	if query != "" {
		url += "?" + query
	}
	r, err := http.NewRequest(method, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	content := "UNSIGNED-PAYLOAD"
	if hashed || len(body) == 0 {
		digest := sha256.Sum256(body)
		content = hex.EncodeToString(digest[:])
	}
	r.Header.Set("X-Amz-Content-Sha256", content)
	r = signer.SignV4(*r, accessKey, secretKey, "", region)
	var head bytes.Buffer
	fmt.Fprintf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, r.URL.RequestURI(), address)
	if method == http.MethodPut {
		fmt.Fprintf(&head, "Content-Length: %d\r\n", len(body))
	}
	if err := r.Header.Write(&head); err != nil {
		return nil, err
	}
	head.WriteString("\r\n")
	return head.Bytes(), nil
}

// heads returns the request of the conn'th connection.
func (w work) head(address, host string, conn int, body []byte) ([]byte, error) {
	target := "/" + bucket + "/" + keyOf(w.size)
	switch w.op {
	case "PUT":
		return signed(http.MethodPut, host, fmt.Sprintf("/%s/put-%d-%d", bucket, conn, w.size), "", nil, body, w.hashed)
	case "LIST":
		return signed(http.MethodGet, host, "/"+bucket, "list-type=2&max-keys=1000&prefix=list%2F", nil, nil, false)
	case "RANGE":
		return signed(http.MethodGet, host, target, "", http.Header{"Range": {"bytes=1000-66535"}}, nil, false)
	default:
		return signed(w.op, host, target, "", nil, nil, false)
	}
}

// client is one connection of a load. It speaks as much HTTP/1.1 as servers
// answer with, so that the load itself costs little.
type client struct {
	address string
	conn    net.Conn
	r       *bufio.Reader
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// do sends a request and reads the answer, and returns its status and the bytes
// of its body.
func (c *client) do(head, body []byte, noBody bool, limit time.Duration) (status int, n int64, err error) {
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if c.conn == nil {
		if c.conn, err = net.DialTimeout("tcp", c.address, limit); err != nil {
			c.conn = nil
			return 0, 0, err
		}
		c.r = bufio.NewReaderSize(c.conn, 256<<10)
	}
	if err = c.conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return 0, 0, err
	}
	if _, err = c.conn.Write(head); err != nil {
		return 0, 0, err
	}
	if len(body) > 0 {
		if _, err = c.conn.Write(body); err != nil {
			return 0, 0, err
		}
	}
	return c.answer(noBody)
}

func (c *client) answer(noBody bool) (status int, n int64, err error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(line))
	if len(fields) < 2 {
		return 0, 0, fmt.Errorf("the answer begins with %q", line)
	}
	if status, err = strconv.Atoi(fields[1]); err != nil {
		return 0, 0, err
	}
	length, chunked, last := int64(-1), false, false
	for {
		if line, err = c.r.ReadSlice('\n'); err != nil {
			return status, 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, err = strconv.ParseInt(string(value), 10, 64)
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			chunked = true
		case bytes.EqualFold(name, []byte("Connection")):
			last = bytes.EqualFold(value, []byte("close"))
		}
		if err != nil {
			return status, 0, err
		}
	}
	if status == http.StatusContinue {
		return c.answer(noBody)
	}
	switch {
	case noBody || status == http.StatusNoContent || status == http.StatusNotModified:
	case chunked:
		n, err = c.chunks()
	case length >= 0:
		n, err = io.CopyN(io.Discard, c.r, length)
	default:
		n, err = io.Copy(io.Discard, c.r)
		last = true
	}
	if last {
		c.close()
	}
	return status, n, err
}

func (c *client) chunks() (n int64, err error) {
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return n, err
		}
		size, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 64)
		if err != nil {
			return n, err
		}
		if _, err := io.CopyN(io.Discard, c.r, size+2); err != nil {
			return n, err
		}
		if n += size; size == 0 {
			return n, nil
		}
	}
}

// load runs w against address for a while. Requests are signed for host. told, if
// not nil, learns of every request's end.
func load(ctx context.Context, w work, address, host string, during time.Duration, told func(began time.Time, took time.Duration, ok bool)) (*sample, error) {
	var body []byte
	if w.op == "PUT" {
		body = noise(w.size)
	}
	heads := make([][]byte, w.conns)
	for i := range heads {
		var err error
		if heads[i], err = w.head(address, host, i, body); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	s := &sample{}
	var begun atomic.Int64
	start := time.Now()
	var firstError atomic.Pointer[error]
	var wg sync.WaitGroup
	for i := range w.conns {
		wg.Go(func() {
			c := &client{address: address}
			defer c.close()
			for ctx.Err() == nil {
				began := time.Now()
				if w.rate > 0 {
					// A request that begins late has waited.
					n := begun.Add(1) - 1
					began = start.Add(time.Duration(n) * time.Second / time.Duration(w.rate))
					if wait := time.Until(began); wait > 0 {
						select {
						case <-ctx.Done():
							return
						case <-time.After(wait):
						}
					}
				}
				status, n, err := c.do(heads[i], body, w.op == "HEAD", 60*time.Second)
				took := time.Since(began)
				if ctx.Err() != nil && err != nil {
					return
				}
				if err == nil && (status < 200 || status > 299) {
					err = fmt.Errorf("%s: status %d", w, status)
				}
				if told != nil {
					told(began, took, err == nil)
				}
				if err != nil {
					atomic.AddInt64(&s.failures, 1)
					firstError.CompareAndSwap(nil, &err)
					time.Sleep(time.Millisecond)
					continue
				}
				atomic.AddInt64(&s.requests, 1)
				atomic.AddInt64(&s.bytes, n+int64(len(body)))
				s.latency.add(took)
			}
		})
	}
	wg.Wait()
	s.took = time.Since(start)
	if err := firstError.Load(); err != nil && told == nil {
		return s, fmt.Errorf("%d requests failed, the first: %w", s.failures, *err)
	}
	if s.requests == 0 && told == nil {
		return s, errors.New("no request ended in time")
	}
	return s, nil
}

// noise is content that does not compress.
func noise(n int64) []byte {
	data := make([]byte, n)
	state := uint64(n)*2654435761 + 1
	for i := range data {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		data[i] = byte(state)
	}
	return data
}

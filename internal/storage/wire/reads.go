package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// maxHeader is the most bytes that the head of an answer may have.
	maxHeader = 1 << 20
	// idleTime is how long a connection is kept that nobody uses.
	idleTime = 50 * time.Second
	// connectTime is how long getting connected may take, and TLS on top.
	connectTime = 5 * time.Second
	bufferSize  = 32 << 10
)

// Connections is an http.RoundTripper over the connections of one store. GET and
// HEAD, which may be asked again if a connection turns out to be dead, are written
// and read by the goroutine that asks; what has a body, and what goes through a
// proxy, is left to the http.Transport, whose settings count for both.
type Connections struct {
	*http.Transport
	maxIdle int

	mu sync.Mutex
	// idle connections by "scheme://host", those that were used last at the end.
	idle  map[string][]*conn
	sweep *time.Timer
}

// RoundTrip implements http.RoundTripper.
func (t *Connections) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead || req.Body != nil {
		return t.Transport.RoundTrip(req)
	}
	if t.Proxy != nil {
		if proxy, err := t.Proxy(req); proxy != nil || err != nil {
			return t.Transport.RoundTrip(req)
		}
	}
	ctx := req.Context()
	for {
		c, err := t.take(ctx, req.URL)
		if err != nil {
			return nil, err
		}
		resp, err := t.ask(c, req)
		if err == nil || !c.used || c.answered || ctx.Err() != nil {
			return resp, err
		}
	}
}

// CloseIdleConnections closes the connections that nobody uses now.
func (t *Connections) CloseIdleConnections() {
	t.Transport.CloseIdleConnections()
	t.closeIdle(time.Now())
}

// closeIdle closes the connections that nobody has used since then.
func (t *Connections) closeIdle(since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := 0
	for to, list := range t.idle {
		n := 0
		for n < len(list) && !list[n].idleSince.After(since) {
			_ = list[n].Close()
			n++
		}
		t.idle[to] = append(list[:0], list[n:]...)
		clear(list[len(list)-n:])
		left += len(list) - n
	}
	t.sweep = nil
	if left > 0 {
		t.sweepLater()
	}
}

// sweepLater closes old connections after a while; mu is held.
func (t *Connections) sweepLater() {
	if t.sweep == nil {
		t.sweep = time.AfterFunc(idleTime/2, func() { t.closeIdle(time.Now().Add(-idleTime)) })
	}
}

// take returns an idle connection that the store has not closed, or a new one.
func (t *Connections) take(ctx context.Context, u *url.URL) (*conn, error) {
	to := u.Scheme + "://" + u.Host
	for {
		t.mu.Lock()
		list := t.idle[to]
		if len(list) == 0 {
			t.mu.Unlock()
			return t.connect(ctx, to, u)
		}
		c := list[len(list)-1]
		list[len(list)-1] = nil
		t.idle[to] = list[:len(list)-1]
		t.mu.Unlock()
		if c.silent() {
			c.used, c.answered, c.headLeft = true, false, maxHeader
			return c, nil
		}
		_ = c.Close()
	}
}

// put keeps c for the next request.
func (t *Connections) put(c *conn) {
	c.idleSince = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle[c.to]) >= t.maxIdle {
		_ = c.Close()
		return
	}
	if t.idle == nil {
		t.idle = map[string][]*conn{}
	}
	t.idle[c.to] = append(t.idle[c.to], c)
	t.sweepLater()
}

func (t *Connections) connect(ctx context.Context, to string, u *url.URL) (*conn, error) {
	port := u.Port()
	if port == "" {
		port = u.Scheme // a service's name is as good
	}
	plain, err := t.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: plain, to: to, headLeft: maxHeader}
	if socket, ok := plain.(syscall.Conn); ok {
		c.raw, _ = socket.SyscallConn()
	}
	c.look = func(fd uintptr) bool {
		var one [1]byte
		_, err := syscall.Read(int(fd), one[:])
		c.nothing = errors.Is(err, syscall.EAGAIN)
		return true
	}
	if u.Scheme == "https" {
		cfg := t.TLSClientConfig.Clone()
		if cfg.ServerName == "" {
			cfg.ServerName = u.Hostname()
		}
		secure := tls.Client(plain, cfg)
		ctx, cancel := context.WithTimeout(ctx, t.TLSHandshakeTimeout)
		defer cancel()
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = plain.Close()
			return nil, fmt.Errorf("tls: %w", err)
		}
		c.Conn = secure
	}
	// Small, for heads: bodies are read past it.
	c.r, c.w = bufio.NewReaderSize(c, 4<<10), bufio.NewWriter(c)
	return c, nil
}

// ask makes req on c. The connection goes back once the answer's body has been read
// to its end, and is closed if it is not or the context of req ends before.
func (t *Connections) ask(c *conn, req *http.Request) (*http.Response, error) {
	a := &answer{all: t, conn: c, ctx: req.Context()}
	a.stop = context.AfterFunc(a.ctx, c.hangUp)
	resp, err := c.exchange(req)
	if err != nil {
		return nil, a.broken(err)
	}
	a.keep = !resp.Close && !req.Close
	if resp.Body == http.NoBody {
		a.over(true)
		return resp, nil
	}
	a.body, resp.Body = resp.Body, a
	return resp, nil
}

// conn is a connection to a store.
type conn struct {
	net.Conn
	to   string
	r    *bufio.Reader
	w    *bufio.Writer
	used bool
	// answered: something has come since the request.
	answered bool
	// headLeft is how much of the head of an answer may still come, negative
	// while a body is read.
	headLeft  int64
	idleSince time.Time

	raw     syscall.RawConn
	look    func(fd uintptr) bool
	nothing bool
}

var errHeaderTooLong = fmt.Errorf("the head of the answer has more than %d bytes", maxHeader)

// Read is what fills the buffer.
func (c *conn) Read(p []byte) (int, error) {
	if c.headLeft >= 0 {
		if c.headLeft == 0 {
			return 0, errHeaderTooLong
		}
		p = p[:min(int64(len(p)), c.headLeft)]
	}
	n, err := c.Conn.Read(p)
	c.answered = c.answered || n > 0
	if c.headLeft >= 0 {
		c.headLeft -= int64(n)
	}
	return n, err
}

func (c *conn) hangUp() { _ = c.Close() }

// silent reports whether an idle connection is open and nothing has come on it:
// what comes without a request must not be taken for the answer to the next.
func (c *conn) silent() bool {
	if c.raw == nil {
		return true
	}
	c.nothing = false
	return c.raw.Read(c.look) == nil && c.nothing
}

// maxInformational is how many answers of 1xx may come before the one that counts.
const maxInformational = 5

// exchange writes req and reads the head of the answer.
func (c *conn) exchange(req *http.Request) (*http.Response, error) {
	if err := req.Write(c.w); err != nil {
		return nil, err
	}
	if err := c.w.Flush(); err != nil {
		return nil, err
	}
	for range maxInformational {
		resp, err := http.ReadResponse(c.r, req)
		switch {
		case err != nil:
			return nil, err
		case resp.StatusCode >= http.StatusOK:
			c.headLeft = -1
			return resp, nil
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the store switched to another protocol, which nobody asked for")
		}
	}
	return nil, fmt.Errorf("more than %d answers of 1xx", maxInformational)
}

// answer is the body of a response.
type answer struct {
	all  *Connections
	conn *conn
	ctx  context.Context
	// stop takes back that the end of ctx closes the connection.
	stop func() bool
	body io.Reader
	keep bool
	// done: the connection has been given back or closed.
	done, closed atomic.Bool
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	if a.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := a.body.Read(p)
	switch err {
	case nil:
	case io.EOF:
		a.over(true)
	default:
		err = a.broken(err)
	}
	return n, err
}

// Close implements io.Closer. It may come while a Read waits.
func (a *answer) Close() error {
	a.closed.Store(true)
	a.over(false)
	return nil
}

// broken ends a with err, or with why its context has ended.
func (a *answer) broken(err error) error {
	a.over(false)
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	return err
}

// over gives the connection back, or closes it where that is not whole.
func (a *answer) over(whole bool) {
	if a.done.Swap(true) {
		return
	}
	if a.stop() && whole && a.keep && a.conn.r.Buffered() == 0 {
		a.all.put(a.conn)
		return
	}
	_ = a.conn.Close()
}

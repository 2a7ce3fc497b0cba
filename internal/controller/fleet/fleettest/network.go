// Package fleettest simulates proxies for tests and benchmarks: they speak the
// real report protocol over TLS, on a network in memory that stands in for the
// pods' addresses.
//
// It imports muxconfig.
package fleettest

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Network connects IPs to simulated proxies. The zero value is ready.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
}

// Dial connects to the proxy at address, whose port is ignored. It fits
// fleet.Options.Dial.
func (n *Network) Dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	l := n.listeners[host]
	n.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("dial %s: connection refused", address)
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- buffer(theirs):
		return ours, nil
	case <-l.closed:
		return nil, fmt.Errorf("dial %s: connection refused", address)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bufferedConn is a pipe whose writes do not wait for the reader, as on a real
// network: without that, two ends that write at once never end.
type bufferedConn struct {
	net.Conn
	written chan []byte
	closed  chan struct{}
	once    sync.Once
}

func buffer(conn net.Conn) net.Conn {
	b := &bufferedConn{Conn: conn, written: make(chan []byte, 1024), closed: make(chan struct{})}
	go func() {
		for {
			select {
			case data := <-b.written:
				if _, err := conn.Write(data); err != nil {
					return
				}
			case <-b.closed:
				return
			}
		}
	}()
	return b
}

func (b *bufferedConn) Write(data []byte) (int, error) {
	select {
	case b.written <- append([]byte(nil), data...):
		return len(data), nil
	case <-b.closed:
		return 0, net.ErrClosed
	}
}

func (b *bufferedConn) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Conn.Close()
}

func (n *Network) listen(ip string) (*listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[ip] != nil {
		return nil, fmt.Errorf("listen on %s: address in use", ip)
	}
	if n.listeners == nil {
		n.listeners = map[string]*listener{}
	}
	l := &listener{network: n, ip: ip, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[ip] = l
	return l, nil
}

type listener struct {
	network *Network
	ip      string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.listeners, l.ip)
		l.network.mu.Unlock()
		close(l.closed)
	})
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(l.ip), Port: 8081} }

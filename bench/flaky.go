package main

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// weather is what a flaky link does to what passes through it.
type weather struct {
	// refuse closes every connection at once, old and new; reset does so with
	// a reset; hang lets nothing pass.
	refuse, reset, hang bool
	// delay is added to each piece that goes to the store, rate bounds the
	// bytes a second that do; 0 is no bound.
	delay time.Duration
	rate  int64
}

// flaky is a TCP link to a store whose weather changes.
type flaky struct {
	listener net.Listener
	target   string
	now      atomic.Pointer[weather]

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newFlaky(ctx context.Context, target string) (*flaky, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &flaky{listener: l, target: target, conns: map[net.Conn]bool{}}
	f.now.Store(&weather{})
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go f.accept()
	return f, nil
}

func (f *flaky) address() string { return f.listener.Addr().String() }

// set changes the weather. What is open is cut where that says so.
func (f *flaky) set(w weather) {
	f.now.Store(&w)
	if !w.refuse && !w.reset {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for conn := range f.conns {
		f.cut(conn, w)
	}
}

func (f *flaky) cut(conn net.Conn, w weather) {
	if tcp, ok := conn.(*net.TCPConn); ok && w.reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (f *flaky) accept() {
	for {
		conn, err := f.listener.Accept()
		if err != nil {
			return
		}
		if w := f.now.Load(); w.refuse || w.reset {
			f.cut(conn, *w)
			continue
		}
		go f.serve(conn)
	}
}

func (f *flaky) serve(client net.Conn) {
	store, err := net.Dial("tcp", f.target)
	if err != nil {
		_ = client.Close()
		return
	}
	f.mu.Lock()
	f.conns[client] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.conns, client)
		f.mu.Unlock()
		_ = client.Close()
		_ = store.Close()
	}()
	go func() {
		f.pass(store, client, true)
		_ = store.Close()
	}()
	f.pass(client, store, false)
}

// pass copies from one side to the other.
func (f *flaky) pass(to, from net.Conn, toStore bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			w := f.now.Load()
			for w.hang {
				time.Sleep(5 * time.Millisecond)
				w = f.now.Load()
			}
			if toStore {
				pause := w.delay
				if w.rate > 0 {
					pause += time.Duration(int64(n) * int64(time.Second) / w.rate)
				}
				if pause > 0 {
					time.Sleep(pause)
				}
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

package s3

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

func TestClientThatStopsSendingIsCutOff(t *testing.T) {
	f := newFront(t, nil, func(c *Config) { c.Auth, c.Limits.ClientIdle = AuthNone, 300*time.Millisecond })
	f.put("k", []byte("old"), storage.SetOptions{})
	for _, size := range []int{1000, 3 * smallBytes} {
		conn, err := net.Dial("tcp", f.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "PUT /assets/k HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", size)
		_, _ = conn.Write(content(size)[:size/2])
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("%d bytes: %d", size, response.StatusCode)
		}
		_ = conn.Close()
		if s := f.lastStats(); s.ErrorCode != "RequestTimeout" {
			t.Errorf("%d bytes: metrics got %+v", size, s)
		}
	}
	if got := f.stored("k"); string(got) != "old" {
		t.Errorf("stored %d bytes", len(got))
	}
}

func TestClientThatStopsReadingIsCutOff(t *testing.T) {
	const size = 64 << 20
	closed := make(chan struct{})
	f := newFront(t, override{Storage: memory.New(0), get: func(context.Context, string, storage.GetOptions) (*storage.Object, error) {
		return &storage.Object{Info: storage.Info{Size: size, ETag: "x"}, Length: size, Body: closing{io.LimitReader(zeros{}, size), closed}}, nil
	}}, func(c *Config) { c.Auth, c.Limits.ClientIdle = AuthNone, 300*time.Millisecond })
	conn, err := net.Dial("tcp", f.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /assets/k HTTP/1.1\r\nHost: h\r\n\r\n")
	<-closed
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type closing struct {
	io.Reader
	closed chan struct{}
}

func (c closing) Close() error { close(c.closed); return nil }

func TestConnectionOutlivesTheDeadlinesOfItsRequests(t *testing.T) {
	f := newFront(t, nil, func(c *Config) { c.Limits.ClientIdle = 100 * time.Millisecond })
	dials := 0
	f.server.Client().Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials++
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	for range 3 {
		f.want(200, http.MethodPut, path("k"), content(3*smallBytes))
		f.want(200, http.MethodGet, path("k"), nil)
		time.Sleep(150 * time.Millisecond) // longer than the deadline: it must be gone
	}
	if dials != 1 {
		t.Errorf("%d connections for requests one after the other", dials)
	}
}

func TestWaitingForAStoreIsNotTheClientsFault(t *testing.T) {
	store := memory.New(0)
	slow := func() { time.Sleep(150 * time.Millisecond) }
	f := newFront(t, override{
		Storage: store,
		set: func(ctx context.Context, key string, body storage.Body, options storage.SetOptions) (storage.Info, error) {
			info, err := store.SetStream(ctx, key, body, options)
			slow()
			return info, err
		},
		get: func(ctx context.Context, key string, options storage.GetOptions) (*storage.Object, error) {
			object, err := store.GetStream(ctx, key, options)
			slow()
			if err == nil {
				body := object.Body
				object.Body = closing{readerFunc(func(p []byte) (int, error) { slow(); return body.Read(p) }), make(chan struct{})}
			}
			return object, err
		},
	}, func(c *Config) { c.Limits.ClientIdle = 100 * time.Millisecond })
	f.want(200, http.MethodPut, path("k"), content(3*smallBytes))
	f.put("k", content(1000), storage.SetOptions{})
	if a := f.want(200, http.MethodGet, path("k"), nil); a.readErr != nil || !bytes.Equal(a.body, content(1000)) {
		t.Errorf("%d bytes, %v", len(a.body), a.readErr)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestNothingIsWrittenBeyondTheLengthOfAnAnswer(t *testing.T) {
	for name, source := range map[string]io.Reader{"reader": struct{ io.Reader }{bytes.NewReader(content(100))}, "writer to": bytes.NewReader(content(100))} {
		w := &flushRecorder{rawRecorder: *newRawRecorder()}
		out := &clientWriter{client: client{http.NewResponseController(w), time.Minute}, w: w, left: 60}
		if _, err := io.Copy(out, source); !errors.Is(err, errTooLong) || w.body.Len() > 60 {
			t.Errorf("%s: %d bytes, %v", name, w.body.Len(), err)
		}
	}
}

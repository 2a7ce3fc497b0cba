package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// reader is a client of the server at base.
type reader struct {
	*Connections
	t    *testing.T
	base string
}

func newReader(t *testing.T, base string) reader {
	t.Helper()
	c, err := Transport(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return reader{c, t, base}
}

func (r reader) ask(ctx context.Context, method, path string) (*http.Response, error) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.RoundTrip(req)
}

// get returns the body of the answer to a GET.
func (r reader) get(path string) (string, error) {
	r.t.Helper()
	resp, err := r.ask(r.t.Context(), http.MethodGet, path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}

func (r reader) mustGet(path, want string) {
	r.t.Helper()
	if got, err := r.get(path); err != nil || got != want {
		r.t.Fatalf("%s: got %.40q, %v; want %.40q", path, got, err, want)
	}
}

// unasked begins what serve says a little later and without a request.
const unasked = "unasked "

// serve answers connections one after another with what each says: the raw answers
// to its requests in order, and then its end.
func serve(t *testing.T, connections ...[]string) reader {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for _, answers := range connections {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for _, raw := range answers {
					if late, is := strings.CutPrefix(raw, unasked); is {
						time.Sleep(10 * time.Millisecond)
						_, _ = io.WriteString(c, late)
						continue
					}
					if _, err := http.ReadRequest(in); err != nil {
						return
					}
					_, _ = io.WriteString(c, raw)
				}
			}()
		}
	}()
	return newReader(t, "http://"+l.Addr().String())
}

func ok(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

func TestReadsUseOneConnectionAgain(t *testing.T) {
	large := strings.Repeat("large", 1<<18)
	handler := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/chunked":
			_, _ = io.WriteString(w, "first ")
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, "second")
		case "/large":
			_, _ = io.WriteString(w, large)
		case "/early":
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "late")
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		default:
			_, _ = io.WriteString(w, req.Method)
		}
	})
	for _, secure := range []bool{false, true} {
		var opened atomic.Int32
		srv := httptest.NewUnstartedServer(handler)
		srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		start := srv.Start
		if secure {
			start = srv.StartTLS
		}
		start()
		r := newReader(t, srv.URL)
		if secure {
			r.TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig
		}
		for range 3 {
			r.mustGet("/chunked", "first second")
			r.mustGet("/large", large)
			r.mustGet("/early", "late")
			r.mustGet("/none", "")
			r.mustGet("/", "GET")
			resp, err := r.ask(t.Context(), http.MethodHead, "/")
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("HEAD: %+v, %v", resp, err)
			}
			_ = resp.Body.Close()
		}
		if n := opened.Load(); n != 1 {
			t.Errorf("TLS %t: %d connections", secure, n)
		}
		r.CloseIdleConnections()
		srv.Close()
	}
}

func TestAReadOnAConnectionThatHasDiedIsMadeOnAnother(t *testing.T) {
	r := serve(t, []string{ok("one")}, []string{ok("two"), ""}, []string{ok("three")})
	r.mustGet("/", "one")
	time.Sleep(20 * time.Millisecond)
	r.mustGet("/", "two")
	// Closed on the request instead of an answer: seen only once it has been sent.
	r.mustGet("/", "three")
}

func TestAReadThatWasAnsweredInPartIsNotMadeAgain(t *testing.T) {
	r := serve(t, []string{ok("one"), "HTTP/1.1 200"}, []string{ok("another")})
	r.mustGet("/", "one")
	if got, err := r.get("/"); err == nil {
		t.Fatalf("got %q", got)
	}
}

func TestWhatComesWithoutARequestIsNoAnswer(t *testing.T) {
	r := serve(t, []string{ok("one") + "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"}, []string{ok("two")})
	r.mustGet("/", "one")
	r.mustGet("/", "two")
	r = serve(t, []string{ok("one"), unasked + "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n", ok("dead")}, []string{ok("two")})
	r.mustGet("/", "one")
	time.Sleep(50 * time.Millisecond)
	r.mustGet("/", "two")
}

func TestTheEndOfARequestClosesItsConnection(t *testing.T) {
	closed := make(chan string, 3)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/body" {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "half ")
			w.(http.Flusher).Flush()
		}
		<-req.Context().Done()
		closed <- req.URL.Path
	}))
	defer srv.Close()
	r := newReader(t, srv.URL)
	why := errors.New("enough")
	for _, path := range []string{"/head", "/body"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
		resp, err := r.ask(ctx, http.MethodGet, path)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		if !errors.Is(err, why) {
			t.Errorf("%s: got %v", path, err)
		}
		if got := <-closed; got != path {
			t.Errorf("%s was closed", got)
		}
	}
	// A body that is left is closed too, also while somebody reads it.
	resp, err := r.ask(t.Context(), http.MethodGet, "/body")
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, func() { _ = resp.Body.Close() })
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the body was whole")
	}
	<-closed
	if len(r.idle[srv.URL]) != 0 {
		t.Errorf("kept %+v", r.idle)
	}
}

func TestAnswersThatAreNoneFail(t *testing.T) {
	for name, raw := range map[string]string{
		"no HTTP":          "SSH-2.0-OpenSSH_9.2\r\n\r\n",
		"a long head":      "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHeader) + "\r\n\r\n",
		"many heads":       strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", maxInformational+1) + ok("late"),
		"another protocol": "HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n",
		"half a body":      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
		"nothing":          "",
	} {
		r := serve(t, []string{raw})
		if got, err := r.get("/"); err == nil {
			t.Errorf("%s: got %.40q", name, got)
		}
		if len(r.idle[r.base]) != 0 {
			t.Errorf("%s: the connection is kept", name)
		}
	}
}

func TestAConnectionIsNotKeptWhereTheServerEndsIt(t *testing.T) {
	for _, raw := range []string{
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\none",
		"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\none",
		"HTTP/1.1 200 OK\r\n\r\none",
	} {
		r := serve(t, []string{raw})
		r.mustGet("/", "one")
		if len(r.idle[r.base]) != 0 {
			t.Errorf("%q: the connection is kept", raw)
		}
	}
}

func TestIdleConnectionsAreClosedInTime(t *testing.T) {
	r := serve(t, []string{ok("one"), ""}, []string{ok("two"), ""})
	r.mustGet("/", "one")
	r.closeIdle(time.Now().Add(-idleTime))
	if len(r.idle[r.base]) != 1 || r.sweep == nil {
		t.Fatalf("kept %d, to be looked at later: %t", len(r.idle[r.base]), r.sweep != nil)
	}
	r.closeIdle(time.Now())
	if len(r.idle[r.base]) != 0 || r.sweep != nil {
		t.Fatalf("kept %d, to be looked at later: %t", len(r.idle[r.base]), r.sweep != nil)
	}
	r.mustGet("/", "two")
}

func TestNoMoreConnectionsAreKeptThanAreAllowed(t *testing.T) {
	var wait sync.WaitGroup
	wait.Add(8)
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		wait.Done()
		wait.Wait()
	}))
	defer srv.Close()
	r := newReader(t, srv.URL)
	r.maxIdle = 3
	var asked sync.WaitGroup
	for range 8 {
		asked.Go(func() { r.mustGet("/", "") })
	}
	asked.Wait()
	if n := len(r.idle[srv.URL]); n != 3 {
		t.Errorf("kept %d", n)
	}
}

func TestReadsGoThroughAProxyWhereOneIsSet(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, "for "+req.URL.Host)
	}))
	defer proxy.Close()
	r := newReader(t, "http://store.example")
	r.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	r.mustGet("/", "for store.example")
}

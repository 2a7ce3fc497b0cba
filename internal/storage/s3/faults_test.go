package s3

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// over returns a store over a server of the test's own.
func over(t *testing.T, endpoint string, edits ...func(*Config)) *Storage {
	t.Helper()
	cfg := Config{Endpoint: endpoint, Bucket: "b", Auth: Auth{Type: Static, AccessKeyID: "id", SecretAccessKey: "secret"}}
	for _, edit := range edits {
		edit(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.trial.verdict.Store(&verdict{until: time.Now().Add(time.Hour)})
	return s
}

// scripted serves each connection by play, which sees the request's head and
// then does with the connection what it likes.
func scripted(t *testing.T, play func(net.Conn, *http.Request)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err == nil {
					play(conn, r)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

func TestATruncatedBodyIsAnErrorAndNeverAShortSuccess(t *testing.T) {
	for name, cut := range map[string]func(net.Conn){"closed": func(c net.Conn) { c.Close() }, "reset": reset} {
		endpoint := scripted(t, func(conn net.Conn, _ *http.Request) {
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
			time.Sleep(50 * time.Millisecond)
			cut(conn)
		})
		data, _, err := storage.Get(t.Context(), over(t, endpoint), "key")
		if storage.CodeOf(err) != storage.CodeUnavailable || storage.Classify(err) != storage.ClassTransient {
			t.Errorf("%s: got %q, %v", name, data, err)
		}
	}
}

func TestWithoutAnAnswerAWriteIsUnknownOnlyIfAllOfItWasSent(t *testing.T) {
	tests := map[string]struct {
		endpoint string
		size     int
		want     storage.Outcome
	}{
		"nobody listens": {"http://127.0.0.1:1", 10, storage.OutcomeNone},
		"reset after the body": {scripted(t, func(conn net.Conn, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			reset(conn)
		}), 10, storage.OutcomeUnknown},
		"closed after an empty body": {scripted(t, func(conn net.Conn, _ *http.Request) { conn.Close() }), 0, storage.OutcomeUnknown},
		"reset in the middle of the body": {scripted(t, func(conn net.Conn, r *http.Request) {
			fmt.Fprint(conn, "HTTP/1.1 100 Continue\r\n\r\n")
			_, _ = io.CopyN(io.Discard, r.Body, 1000)
			reset(conn)
		}), 64 << 20, storage.OutcomeNone},
		"refused with an answer": {scripted(t, func(conn net.Conn, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			fmt.Fprint(conn, "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n")
		}), 10, storage.OutcomeNone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			body := storage.Stream(io.LimitReader(endlessA{}, int64(tt.size)), int64(tt.size))
			_, err := over(t, tt.endpoint).SetStream(t.Context(), "key", body, storage.SetOptions{})
			var e *storage.Error
			if !errors.As(err, &e) || e.Outcome != tt.want || storage.Classify(err) != storage.ClassTransient {
				t.Errorf("got %v of class %s, want outcome %d", err, storage.Classify(err), tt.want)
			}
		})
	}
}

type endlessA struct{}

func (endlessA) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func TestACancellationEndsEveryOperationAtOnce(t *testing.T) {
	stalled := make(chan struct{})
	defer close(stalled)
	endpoint := scripted(t, func(conn net.Conn, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-stalled
	})
	s := over(t, endpoint)
	for name, do := range map[string]func(context.Context) error{
		"get":    func(ctx context.Context) error { _, err := s.GetStream(ctx, "k", storage.GetOptions{}); return err },
		"stat":   func(ctx context.Context) error { _, err := s.Stat(ctx, "k", storage.StatOptions{}); return err },
		"delete": func(ctx context.Context) error { return s.Delete(ctx, "k") },
		"list":   func(ctx context.Context) error { _, err := s.List(ctx, storage.ListOptions{}); return err },
		"set": func(ctx context.Context) error {
			_, err := storage.Set(ctx, s, "k", []byte("x"), storage.SetOptions{})
			return err
		},
		"check": s.Check,
	} {
		for cause, class := range map[error]storage.Class{context.Canceled: storage.ClassAbort, storage.CauseTimeout: storage.ClassTransient} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
			began := time.Now()
			if err := do(ctx); storage.Classify(err) != class || !errors.Is(err, cause) {
				t.Errorf("%s, by %v: got %v of class %s", name, cause, err, storage.Classify(err))
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("%s took %s", name, took)
			}
		}
	}
}

func TestAHeadThatIsRefusedWithoutAWordIsAskedAgainForOne(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, "<Error><Code>ExpiredToken</Code><Message>it has expired</Message></Error>")
	}))
	defer server.Close()
	_, err := over(t, server.URL).Stat(t.Context(), "k", storage.StatOptions{})
	if storage.CodeOf(err) != storage.CodeCredentialExpired {
		t.Errorf("got %v, want CREDENTIAL_EXPIRED", err)
	}
}

func TestAWrongClockIsCorrectedOnceByTheServersDate(t *testing.T) {
	const ahead = 3 * time.Hour
	var requests int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		signed, err := time.Parse(amzDateFormat, r.Header.Get("X-Amz-Date"))
		if err != nil || time.Until(signed) < ahead-time.Minute {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "<Error><Code>RequestTimeTooSkewed</Code></Error>")
			return
		}
		w.Header().Set("ETag", `"e"`)
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer server.Close()
	s := over(t, server.URL)
	if _, err := storage.Set(t.Context(), s, "k", []byte("content"), storage.SetOptions{}); err != nil {
		t.Errorf("the first write: %v", err)
	}
	if _, err := storage.Set(t.Context(), s, "k", []byte("content"), storage.SetOptions{}); err != nil || requests != 3 {
		t.Errorf("the second write: %v, %d requests in all, want 3", err, requests)
	}
}

func TestARefusalBeforeTheBodySparesTheBody(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "100-continue" {
			t.Error("a large body was not announced")
		}
		w.Header().Set("Retry-After", "9")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "<Error><Code>SlowDown</Code></Error>")
	}))
	defer server.Close()
	read := 0
	body := storage.Stream(io.TeeReader(io.LimitReader(endlessA{}, 64<<20), counter{&read}), 64<<20)
	_, err := over(t, server.URL).SetStream(t.Context(), "k", body, storage.SetOptions{})
	var e *storage.Error
	if !errors.As(err, &e) || e.Code != storage.CodeThrottled || e.RetryAfter != 9*time.Second || e.Outcome != storage.OutcomeNone {
		t.Errorf("got %v", err)
	}
	if read > 0 {
		t.Errorf("%d bytes of the body were read", read)
	}
}

type counter struct{ n *int }

func (c counter) Write(p []byte) (int, error) {
	*c.n += len(p)
	return len(p), nil
}

func TestAPrivateCAIsTrustedAndNoOther(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1")
		fmt.Fprint(w, "x")
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if _, _, err := storage.Get(t.Context(), over(t, server.URL, func(c *Config) { c.CABundle = ca }), "k"); err != nil {
		t.Errorf("with its CA: %v", err)
	}
	_, _, err := storage.Get(t.Context(), over(t, server.URL), "k")
	if storage.CodeOf(err) != storage.CodeUnavailable || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without its CA: %v", err)
	}
}

func crc32cOfA(n int64) []byte {
	return sumOf(crc32.New(crc32.MakeTable(crc32.Castagnoli)), io.LimitReader(endlessA{}, n))
}

func TestEveryWriteCarriesACommitToken(t *testing.T) {
	sum := make([]byte, 32)
	tests := map[string]struct {
		size, promised int64
		sums           storage.Checksums
		anonymous      bool
		verifies       bool
		payload, md5   bool
		want, checksum string
	}{
		"small":                       {size: 10, promised: 10, payload: true},
		"small, of unknown length":    {size: 10, promised: -1, payload: true},
		"small, anonymous":            {size: 10, promised: 10, anonymous: true, md5: true, payload: true},
		"large":                       {size: 1 << 20, promised: 1 << 20, want: signedChunks},
		"large, SHA-256 known":        {size: 1 << 20, promised: 1 << 20, sums: storage.Checksums{SHA256: sum}, payload: true},
		"large, MD5 known":            {size: 1 << 20, promised: 1 << 20, sums: storage.Checksums{MD5: sum[:16]}, md5: true, want: unsignedPayload},
		"large, anonymous":            {size: 1 << 20, promised: 1 << 20, anonymous: true, want: unsignedTrailer},
		"small, verified":             {size: 10, promised: 10, verifies: true, payload: true},
		"larger, verified":            {size: checksumFrom, promised: checksumFrom, verifies: true, want: unsignedPayload, checksum: "Crc32"},
		"large, verified":             {size: 1 << 20, promised: 1 << 20, verifies: true, want: unsignedTrailer},
		"large, CRC-32C verified":     {size: 1 << 20, promised: 1 << 20, verifies: true, sums: storage.Checksums{CRC32C: crc32cOfA(1 << 20)}, want: unsignedPayload, checksum: "Crc32c"},
		"large, SHA-256 and verified": {size: 1 << 20, promised: 1 << 20, verifies: true, sums: storage.Checksums{SHA256: sum}, payload: true, checksum: "Sha256"},
		"middling, of unknown length": {size: 1 << 20, promised: -1, payload: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got http.Header
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = r.Header
				_, _ = io.Copy(io.Discard, r.Body)
			}))
			defer server.Close()
			s := over(t, server.URL, func(c *Config) {
				if tt.anonymous {
					c.Auth = Auth{Type: Anonymous}
				}
			})
			s.trial.verdict.Store(&verdict{verifies: tt.verifies, until: time.Now().Add(time.Hour)})
			body := storage.Stream(io.LimitReader(endlessA{}, tt.size), tt.promised)
			if _, err := s.SetStream(t.Context(), "k", body, storage.SetOptions{Checksums: tt.sums}); err != nil {
				t.Fatal(err)
			}
			payload := got.Get("X-Amz-Content-Sha256")
			if tt.payload && len(payload) != 64 || tt.want != "" && payload != tt.want {
				t.Errorf("X-Amz-Content-Sha256 is %q", payload)
			}
			if tt.checksum != "" && got.Get("X-Amz-Checksum-"+tt.checksum) == "" {
				t.Errorf("there is no %s among %v", tt.checksum, got)
			}
			if tt.md5 != (got.Get("Content-Md5") != "") {
				t.Errorf("Content-MD5 is %q", got.Get("Content-Md5"))
			}
			if signed := strings.Contains(got.Get("Authorization"), "x-amz-content-sha256"); signed == tt.anonymous {
				t.Errorf("Authorization is %q", got.Get("Authorization"))
			}
		})
	}
}

func TestListingsOfOldServersAreUnderstood(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated>
			<Contents><Key>p/a%2Bb c</Key><LastModified>2026-01-02T03:04:05.678Z</LastModified><ETag>&quot;e&quot;</ETag><Size>3</Size></Contents>
			<Contents><Key>p/</Key><Size>0</Size></Contents></ListBucketResult>`)
	}))
	defer server.Close()
	page, err := over(t, server.URL, func(c *Config) { c.Prefix = "p/" }).List(t.Context(), storage.ListOptions{})
	if err != nil || len(page.Objects) != 1 || page.Objects[0].Key != "a%2Bb c" || page.Objects[0].ETag != "e" {
		t.Errorf("got %+v, %v", page, err)
	}
}

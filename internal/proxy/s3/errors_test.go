package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

func TestStorageErrorsBecomeWhatClientsUnderstand(t *testing.T) {
	var failure error
	f := newFront(t, override{Storage: memory.New(0), get: func(context.Context, string, storage.GetOptions) (*storage.Object, error) { return nil, failure }})
	for _, test := range []struct {
		code       storage.Code
		retryAfter time.Duration
		status     int
		want       string
		wantAfter  string
	}{
		{storage.CodeKeyNotFound, 0, 404, "NoSuchKey", ""},
		{storage.CodeAllBackendsDown, 0, 503, "ServiceUnavailable", "1"},
		{storage.CodeAllBackendsDown, 2500 * time.Millisecond, 503, "ServiceUnavailable", "3"},
		{storage.CodeThrottled, 0, 503, "SlowDown", "1"},
		{storage.CodeBackendTimeout, 0, 503, "ServiceUnavailable", "1"},
		{storage.CodeBackendDraining, 0, 503, "ServiceUnavailable", "1"},
		{storage.CodeAccessDenied, 0, 502, "InternalError", ""},
		{storage.CodeCredentialExpired, 0, 502, "InternalError", ""},
		{storage.CodeBucketNotFound, 0, 502, "InternalError", ""},
		{storage.CodeUnsupported, 0, 501, "NotImplemented", ""},
		{storage.CodeNoSpace, 0, 507, "InsufficientStorage", ""},
		{storage.CodeRecursionDepthExceeded, 0, 508, "LoopDetected", ""},
		{storage.CodeInvalidWeight, 0, 500, "InternalError", ""},
	} {
		failure = &storage.Error{Code: test.code, RetryAfter: test.retryAfter}
		a := f.refused(test.status, test.want, http.MethodGet, path("k"), nil)
		if a.Header.Get("Retry-After") != test.wantAfter {
			t.Errorf("%s: Retry-After %q, want %q", test.code, a.Header.Get("Retry-After"), test.wantAfter)
		}
		if a.Header.Get("x-storagemux-error-code") != string(test.code) {
			t.Errorf("%s: x-storagemux-error-code is %q", test.code, a.Header.Get("x-storagemux-error-code"))
		}
		if s := f.lastStats(); s.StorageCode != string(test.code) || s.ErrorCode != test.want || s.Operation != "GetObject" {
			t.Errorf("%s: metrics got %+v", test.code, s)
		}
	}
	failure = errors.New("unknown")
	f.refused(500, "InternalError", http.MethodGet, path("k"), nil)
}

func TestErrorsNameRequestAndResourceAndNoSecrets(t *testing.T) {
	f := newFront(t, nil)
	a := f.refused(404, "NoSuchKey", http.MethodGet, path("a<b"), nil)
	for _, want := range []string{"<Resource>/assets/a&lt;b</Resource>", "<RequestId>" + a.Header.Get("x-amz-request-id") + "</RequestId>"} {
		if !strings.Contains(string(a.body), want) {
			t.Errorf("%s is not in %s", want, a.body)
		}
	}
	if a := f.do(http.MethodHead, path("none"), nil); a.StatusCode != 404 || len(a.body) != 0 {
		t.Errorf("HEAD: %d %q", a.StatusCode, a.body)
	}
}

func TestSignaturesAreAskedFor(t *testing.T) {
	f := newFront(t, nil)
	f.put("k", []byte("x"), storage.SetOptions{})
	if a := f.send(f.request(http.MethodGet, path("k"), nil)); a.StatusCode != 403 || a.code() != "AccessDenied" {
		t.Errorf("without a signature: %d %s", a.StatusCode, a.body)
	}
	config := testConfig(f.store)
	config.Keys = nil
	f.handler.SetConfig(config)
	f.refused(403, "InvalidAccessKeyId", http.MethodGet, path("k"), nil)
	config = testConfig(f.store)
	config.Auth = AuthNone
	f.handler.SetConfig(config)
	if a := f.send(f.request(http.MethodGet, path("k"), nil)); a.StatusCode != 200 {
		t.Errorf("with auth None: %d %s", a.StatusCode, a.body)
	}
}

func TestBodyThatBreaksIsNeverSilentlyShort(t *testing.T) {
	for name, source := range map[string]io.Reader{
		"an error":         io.MultiReader(bytes.NewReader(content(100_000)), iotest.ErrReader(errors.New("reset"))),
		"an early end":     bytes.NewReader(content(100_000)),
		"more than stated": bytes.NewReader(content(300_000)),
	} {
		f := newFront(t, override{Storage: memory.New(0), get: func(context.Context, string, storage.GetOptions) (*storage.Object, error) {
			return &storage.Object{Info: storage.Info{Size: 200_000, ETag: "x"}, Length: 200_000, Body: io.NopCloser(struct{ io.Reader }{source})}, nil
		}})
		a := f.do(http.MethodGet, path("k"), nil)
		if a.readErr == nil && name != "more than stated" {
			t.Errorf("%s: the client read %d bytes and saw no error", name, len(a.body))
		}
		if len(a.body) > 200_000 {
			t.Errorf("%s: the client read %d bytes", name, len(a.body))
		}
		f.server.Close()
		if s := f.lastStats(); !s.Aborted || s.ErrorCode == "" {
			t.Errorf("%s: metrics got %+v", name, s)
		}
	}
}

func TestClientThatLeavesCancelsTheStorageAndIsNoError(t *testing.T) {
	entered, left := make(chan struct{}), make(chan error, 1)
	f := newFront(t, override{Storage: memory.New(0), get: func(ctx context.Context, _ string, _ storage.GetOptions) (*storage.Object, error) {
		close(entered)
		<-ctx.Done()
		left <- ctx.Err()
		return nil, storage.Interrupted(ctx, "GetStream", "waiting")
	}})
	ctx, cancel := context.WithCancel(t.Context())
	r := f.sign(f.request(http.MethodGet, path("k"), nil), nil).WithContext(ctx)
	go func() { <-entered; cancel() }()
	if _, err := f.server.Client().Do(r); err == nil {
		t.Error("the client got an answer")
	}
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the storage saw %v", err)
	}
	f.server.Close()
	if s := f.lastStats(); s.Status != StatusClientClosed || !s.Aborted {
		t.Errorf("metrics got %+v", s)
	}
}

func TestTooManyRequestsAreShed(t *testing.T) {
	entered, gate := make(chan struct{}), make(chan struct{})
	f := newFront(t, override{Storage: memory.New(0), stat: func(context.Context, string, storage.StatOptions) (storage.Info, error) {
		close(entered)
		<-gate
		return storage.Info{ETag: "x"}, nil
	}}, func(c *Config) { c.Limits.MaxInFlight = 1 })
	done := make(chan struct{})
	go func() { defer close(done); f.do(http.MethodHead, path("k"), nil) }()
	<-entered
	if f.handler.InFlight() != 1 {
		t.Errorf("%d requests are in flight", f.handler.InFlight())
	}
	a := f.refused(503, "SlowDown", http.MethodGet, path("k"), nil)
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	close(gate)
	<-done
	f.lastStats()
	f.want(404, http.MethodGet, path("k"), nil)
}

func TestHandlerWithoutConfigIsUnavailable(t *testing.T) {
	f := newFront(t, nil)
	f.handler.SetConfig(nil)
	f.refused(503, "ServiceUnavailable", http.MethodGet, path("k"), nil)
}

func TestServingMemberIsNamedUnlessSwitchedOff(t *testing.T) {
	f := newFront(t, override{Storage: memory.New(0), stat: func(context.Context, string, storage.StatOptions) (storage.Info, error) {
		return storage.Info{ETag: "x", ServedBy: "mirrors/eu"}, nil
	}})
	if got := f.want(200, http.MethodHead, path("k"), nil).Header.Get("x-storagemux-backend"); got != "mirrors/eu" {
		t.Errorf("got %q", got)
	}
	if s := f.lastStats(); s.ServedBy != "mirrors/eu" {
		t.Errorf("metrics got %+v", s)
	}
	config := testConfig(f.handler.config.Load().Storage)
	config.ServeBackendHeader = false
	f.handler.SetConfig(config)
	if got := f.want(200, http.MethodHead, path("k"), nil).Header.Get("x-storagemux-backend"); got != "" {
		t.Errorf("got %q", got)
	}
}

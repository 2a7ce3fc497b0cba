package s3

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// lines is a log that several goroutines may write.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

// logging is a front whose log is at level.
func logging(t *testing.T, mode AccessLog, level slog.Level, store storage.Storage) (*front, *lines) {
	t.Helper()
	log := &lines{}
	f := &front{t: t, store: store, metrics: &recordedMetrics{}}
	f.handler = New(Options{
		Metrics: f.metrics, AccessLog: mode,
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: level})),
	})
	f.handler.SetConfig(testConfig(store))
	f.server = httptest.NewServer(f.handler)
	t.Cleanup(f.server.Close)
	return f, log
}

func failing(err error) storage.Storage {
	return override{Storage: memory.New(0), get: func(context.Context, string, storage.GetOptions) (*storage.Object, error) { return nil, err }}
}

func TestTheAccessLogSaysWhatARequestCameTo(t *testing.T) {
	f, log := logging(t, AccessLogAll, slog.LevelInfo, memory.New(0))
	f.want(http.StatusOK, http.MethodPut, path("a b"), []byte("four"))
	f.want(http.StatusOK, http.MethodGet, path("a b"), nil)
	f.refused(http.StatusNotFound, "NoSuchKey", http.MethodGet, path("none"), nil)
	f.lastStats()
	var got []map[string]any
	for line := range strings.Lines(log.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		got = append(got, one)
	}
	want := []map[string]any{
		{"level": "INFO", "operation": "PutObject", "key": "a b", "status": 200., "outcome": "ok", "bytesIn": 4., "bytesOut": 0.},
		{"level": "INFO", "operation": "GetObject", "key": "a b", "status": 200., "outcome": "ok", "bytesIn": 0., "bytesOut": 4.},
		{"level": "INFO", "operation": "GetObject", "key": "none", "status": 404., "outcome": "refused", "code": "NoSuchKey", "storageCode": "STORAGE.KEY_NOT_FOUND"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d lines: %s", len(got), log)
	}
	for i := range want {
		for name, value := range want[i] {
			if got[i][name] != value {
				t.Errorf("line %d: %s is %v, want %v", i, name, got[i][name], value)
			}
		}
		if id, _ := got[i]["requestID"].(string); len(id) != 16 || got[i]["duration"] == nil {
			t.Errorf("line %d: %v", i, got[i])
		}
	}
}

func TestTheAccessLogCanBeNarrowedAndSwitchedOff(t *testing.T) {
	down := failing(storage.Errorf(storage.CodeAllBackendsDown, "GetStream", "no backend is up"))
	for name, test := range map[string]struct {
		mode   AccessLog
		level  slog.Level
		levels string
	}{
		"all":                    {AccessLogAll, slog.LevelInfo, "INFO WARN"},
		"errors":                 {AccessLogErrors, slog.LevelInfo, "WARN"},
		"the default":            {"", slog.LevelInfo, "WARN"},
		"errors and debug":       {AccessLogErrors, slog.LevelDebug, "DEBUG WARN"},
		"off, whatever is asked": {AccessLogOff, slog.LevelDebug, ""},
	} {
		f, log := logging(t, test.mode, test.level, down)
		f.want(http.StatusOK, http.MethodHead, "/assets", nil)
		f.refused(http.StatusServiceUnavailable, "ServiceUnavailable", http.MethodGet, path("k"), nil)
		f.lastStats()
		var levels []string
		for line := range strings.Lines(log.String()) {
			var one struct{ Level string }
			_ = json.Unmarshal([]byte(line), &one)
			levels = append(levels, one.Level)
		}
		if got := strings.Join(levels, " "); got != test.levels {
			t.Errorf("%s: levels %q, want %q", name, got, test.levels)
		}
	}
	var mode AccessLog
	if mode.UnmarshalText([]byte("some")) == nil || mode.UnmarshalText([]byte("off")) != nil || mode != AccessLogOff {
		t.Error("the flag's value is not checked")
	}
}

func TestTheAccessLogHoldsNoCredentials(t *testing.T) {
	secret := errors.New(`Get "https://user:hunter2@store/bucket/k?X-Amz-Signature=hunter2": connection refused`)
	err := storage.Errorf(storage.CodeUnavailable, "GetStream", "ask the store").WithCause(&wrapped{secret, errors.New("connection refused")})
	f, log := logging(t, AccessLogAll, slog.LevelDebug, failing(errors.Join(err, err)))
	r := f.sign(f.request(http.MethodGet, path("k")+"?response-content-type=hunter2", nil, "X-Amz-Meta-Token", "hunter2"), nil)
	signature := r.Header.Get("Authorization")[len(r.Header.Get("Authorization"))-64:]
	f.send(r)
	r = f.request(http.MethodGet, path("k")+"?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=hunter2&X-Amz-Credential="+testID, nil)
	f.send(r)
	f.lastStats()
	if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "connection refused") {
		t.Errorf("got %s", text)
	}
	for _, word := range []string{"hunter2", signature, testSecret + `"`, testID} {
		if strings.Contains(log.String(), word) {
			t.Errorf("%q is in the log: %s", word, log)
		}
	}
}

// wrapped is an error whose own text holds what its cause's does not.
type wrapped struct{ text, cause error }

func (w *wrapped) Error() string { return w.text.Error() }
func (w *wrapped) Unwrap() error { return w.cause }

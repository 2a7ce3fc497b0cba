package muxengine

import (
	"cmp"
	"context"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

func TestMuxHasEveryOperationOfAStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		var s storage.Storage = r.Mux
		ctx := t.Context()
		if _, err := storage.Set(ctx, s, "a", []byte("hello"), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SetStream(ctx, "b", once("world"), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SetPartial(ctx, "b", 4, once("k!")); err != nil {
			t.Fatal(err)
		}
		if data, _, err := storage.Get(ctx, s, "b"); err != nil || string(data) != "worlk!" {
			t.Fatalf("get: %q, %v", data, err)
		}
		obj, err := s.GetStream(ctx, "a", storage.GetOptions{Range: &storage.Range{First: 1, Last: 2}})
		if err != nil {
			t.Fatal(err)
		}
		part, _ := io.ReadAll(obj.Body)
		_ = obj.Body.Close()
		if ok, err := storage.Has(ctx, s, "a"); string(part) != "el" || !ok || err != nil {
			t.Fatalf("got %q, %v, %v", part, ok, err)
		}
		if info, err := s.Stat(ctx, "a", storage.StatOptions{}); err != nil || info.Size != 5 {
			t.Fatalf("stat: %+v, %v", info, err)
		}
		if page, err := s.List(ctx, storage.ListOptions{}); err != nil || len(page.Objects) != 2 {
			t.Fatalf("list: %+v, %v", page, err)
		}
		if err := s.Delete(ctx, "a"); err != nil || r.stores[0].has("a") {
			t.Fatalf("delete: %v", err)
		}
		if s.Capabilities() != storage.AllCapabilities() {
			t.Fatalf("got %+v", s.Capabilities())
		}
	})
}

func TestCooldownNeverExceedsItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, func(c *Config, _ *Options) { c.Health = Health{Cooldown: time.Second, MaxCooldown: 5 * time.Second} })
		r.stores[0].fail(unavailable())
		for i := range 20 {
			_, _ = r.get("k")
			if got := r.stores[0].count("get"); got != i+1 {
				t.Fatalf("after %d cooldowns of at most 5 s the backend was asked %d times", i, got)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

func TestDrainingBackendIsSkippedByRoundRobin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeRoundRobin))
		r.everywhere("k", "hello")
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = r.Drain(t.Context(), "a") })
		synctest.Wait()
		for range 4 {
			r.mustGet("k", "hello")
		}
		wantCounts(t, r.stores, "get", 1, 2, 2)
		_ = obj.Body.Close()
		wg.Wait()
	})
}

// sources returns the package's files by name, tests apart. MUXENGINE_SOURCE is
// set when a mutant is tried, which is a copy.
func sources(t *testing.T) map[string]string {
	t.Helper()
	dir := cmp.Or(os.Getenv("MUXENGINE_SOURCE"), ".")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[e.Name()] = string(data)
		}
	}
	return files
}

func TestEngineHasNoRetryOfItsOwn(t *testing.T) {
	for name, source := range sources(t) {
		for _, word := range []string{"time.Sleep", "time.After(", "backoff", "Backoff", "retryCount"} {
			if strings.Contains(source, word) && name != "retry.go" {
				t.Errorf("%s contains %s", name, word)
			}
		}
		if strings.Contains(source, "failsafe-go") != (name == "retry.go") {
			t.Errorf("%s: the library is used in retry.go and nowhere else", name)
		}
	}
}

func TestEngineImportsNothingOfAnOperatingSystemOrACluster(t *testing.T) {
	allowed := []string{
		"context", "encoding/json", "errors", "fmt", "io", "maps", "math", "math/bits", "math/rand/v2", "net/http", "slices",
		"strconv", "strings", "sync", "sync/atomic", "time",
		"github.com/suaveplan/storagemux/internal/storage",
		"github.com/cespare/xxhash/v2", "github.com/failsafe-go/failsafe-go", "github.com/failsafe-go/failsafe-go/retrypolicy",
		"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes", "go.opentelemetry.io/otel/trace",
	}
	for name, source := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if path, _ := strconv.Unquote(spec.Path.Value); !slices.Contains(allowed, path) {
				t.Errorf("%s imports %s", name, path)
			}
			if strings.Contains(source, "http.Client") || strings.Contains(source, "http.Transport") {
				t.Errorf("%s uses more of net/http than its names of status codes", name)
			}
		}
	}
}

func TestEveryCodeIsReachedFromARealCall(t *testing.T) {
	configured := func(options ...option) func(t *testing.T) error {
		return func(*testing.T) error {
			cfg := Config{Mode: ModeFailover, Members: []Member{{Name: "a", Storage: newFake("a")}}}
			for _, o := range options {
				o(&cfg, &Options{})
			}
			_, err := New(cfg, Options{})
			return err
		}
	}
	reached := map[storage.Code]func(t *testing.T) error{
		storage.CodeNoBackendsConfigured:    configured(func(c *Config, _ *Options) { c.Members = nil }),
		storage.CodeInvalidMode:             configured(inMode("magic")),
		storage.CodeInvalidWeight:           configured(inMode(ModeWeighted), withWeights(-1)),
		storage.CodeWeightedRequiresWeights: configured(inMode(ModeWeighted)),
		storage.CodeMirrorOriginRequired:    configured(inMode(ModeShield)),
		storage.CodeRecursionDepthExceeded: func(*testing.T) error {
			_, err := New(deep(9), Options{})
			return err
		},
		storage.CodeBackendNameConflict: func(t *testing.T) error {
			return newRig(t, 1).AddBackend(Member{Name: "a", Storage: newFake("a")})
		},
		storage.CodeBackendNotFound: func(t *testing.T) error { return newRig(t, 1).SetWeight("x", 1) },
		storage.CodeAllBackendsDown: func(t *testing.T) error {
			r := newRig(t, 1)
			r.stores[0].fail(unavailable())
			_, err := r.get("k")
			return err
		},
		storage.CodeBackendAborted: func(t *testing.T) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := newRig(t, 1).Stat(ctx, "k", storage.StatOptions{})
			return err
		},
		storage.CodeWriteFanoutPartial: func(t *testing.T) error {
			r := newRig(t, 2, inMode(ModeMirror), func(c *Config, _ *Options) { c.OnFanoutPartial = FanoutPartialFail })
			r.stores[1].fail(unavailable())
			return r.put("k", "x")
		},
		storage.CodeBackendTimeout: func(t *testing.T) error {
			r := newRig(t, 1)
			r.stores[0].hang()
			_, _ = r.get("k")
			return r.told(TopicBackendDown)[0].Cause
		},
		storage.CodeHealthcheckFailed: func(t *testing.T) error {
			r := newRig(t, 1, withMembers(func(_ int, m *Member) { m.HealthCheck.Interval = time.Second }))
			r.stores[0].fail(unavailable())
			time.Sleep(time.Second + time.Millisecond)
			return r.told(TopicBackendDown)[0].Cause
		},
		storage.CodeBackendDraining: func(t *testing.T) error {
			r := newRig(t, 2)
			r.everywhere("k", "hello")
			r.stores[0].hang()
			time.AfterFunc(time.Second, func() { _ = r.withDrain(Drain{Phase: DrainGranted, Deadline: time.Now()}) })
			r.mustGet("k", "hello")
			return r.told(TopicFailover)[0].Cause
		},
	}
	if n := len(slices.Collect(maps.Keys(reached))); n != 14 {
		t.Fatalf("%d codes are reached, and there are 14", n)
	}
	for code, reach := range reached {
		synctest.Test(t, func(t *testing.T) {
			if err := reach(t); storage.CodeOf(err) != code {
				t.Errorf("%s: got %v", code, err)
			}
		})
	}
}

package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

// Remote is a store whose server is reached through a network.
type Remote struct {
	// Address is the server's, host and port.
	Address string
	// Open returns a handle on one and the same store, with connections of its
	// own, whose server is reached at address.
	Open func(t *testing.T, address string) storage.Storage
	// Options are those of Run, of which Debris is used.
	Options Options
}

// RunFaults checks what comes of a store's operations when its server, or the
// network on the way to it, fails.
func RunFaults(t *testing.T, r Remote) {
	t.Run("broken reads are errors", r.brokenReads)
	t.Run("broken writes leave the old object", r.brokenWrites)
	t.Run("stalls end with their caller", r.stalls)
	t.Run("slow networks only take time", r.slowNetworks)
	t.Run("answers have their class", r.answers)
}

// suite returns what the checks of a handle work with.
func (r Remote) suite(t *testing.T, address string) *suite {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	s := &suite{T: t, Options: r.Options, ctx: ctx, store: r.Open(t, address)}
	if closer, is := s.store.(io.Closer); is {
		t.Cleanup(func() { _ = closer.Close() })
	}
	return s
}

func (r Remote) brokenReads(t *testing.T) {
	direct := r.suite(t, r.Address)
	data := noiseBytes(81, 1<<20)
	direct.set("read", data)
	for name, faults := range map[string][]servers.Fault{
		"reset before the request": servers.Resets("upstream"),
		"reset before the answer":  servers.Resets("downstream"),
		"ends in the headers":      servers.Ends("downstream", 20),
		"reset in the headers":     servers.ResetsAfter("downstream", 20),
		"ends after the headers":   servers.Ends("downstream", 2000),
		"ends in the body":         servers.Ends("downstream", 600_000),
		"reset in the body":        servers.ResetsAfter("downstream", 600_000),
		"ends near the end":        servers.Ends("downstream", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			network := servers.ThroughNetwork(t, r.Address)
			network.Break(t, faults)
			s := r.suite(t, network.Address())
			got, _, err := storage.Get(s.ctx, s.store, "read")
			if err == nil || storage.Classify(err) != storage.ClassTransient {
				t.Errorf("reading gave %d bytes and %v of class %s, want a transient error", len(got), err, storage.Classify(err))
			}
			if !bytes.HasPrefix(data, got) {
				t.Error("what was read is not what is stored")
			}
		})
	}
}

func (r Remote) brokenWrites(t *testing.T) {
	direct := r.suite(t, r.Address)
	old := []byte("the old object")
	for _, size := range []int64{100, 200_000, 3 << 20} {
		for name, faults := range map[string][]servers.Fault{
			"reset before the request": servers.Resets("upstream"),
			"ends in the body":         servers.Ends("upstream", 2000+size/2),
			"reset in the body":        servers.ResetsAfter("upstream", 2000+size/2),
			"reset before the answer":  servers.Resets("downstream"),
		} {
			for _, promised := range []int64{size, -1} {
				if size == 100 && strings.HasSuffix(name, "body") {
					continue // the cut would come after it
				}
				if (size == 200_000) != (promised < 0) && !strings.HasSuffix(name, "body") {
					continue // enough is shown; some stores wait long for what they may have left
				}
				t.Run(fmt.Sprintf("%s, %d bytes, promised %d", name, size, promised), func(t *testing.T) {
					direct.set("written", old)
					network := servers.ThroughNetwork(t, r.Address)
					s := r.suite(t, network.Address())
					network.Break(t, faults)
					data := noiseBytes(82, size)
					_, err := s.store.SetStream(s.ctx, "written", storage.Stream(bytes.NewReader(data), promised), storage.SetOptions{})
					network.Mend(t)
					if err == nil || storage.Classify(err) != storage.ClassTransient {
						t.Errorf("got %v of class %s, want a transient error", err, storage.Classify(err))
					}
					var e *storage.Error
					unknown := errors.As(err, &e) && e.Outcome == storage.OutcomeUnknown
					got, _, err := storage.Get(direct.ctx, direct.store, "written")
					if err != nil || !bytes.Equal(got, old) && (!unknown || !bytes.Equal(got, data)) {
						t.Errorf("afterwards there are %d bytes, %v; the outcome is unknown: %t", len(got), err, unknown)
					}
				})
			}
		}
	}
	direct.T = t
	direct.wantNoDebris("broken writes")
}

func (r Remote) stalls(t *testing.T) {
	direct := r.suite(t, r.Address)
	old := []byte("the old object")
	direct.set("stalled", old)
	for _, stream := range []string{"upstream", "downstream"} {
		for name, do := range operations() {
			t.Run(name+" "+stream, func(t *testing.T) {
				network := servers.ThroughNetwork(t, r.Address)
				s := r.suite(t, network.Address())
				network.Break(t, servers.Stalls(stream))
				ctx, cancel := context.WithCancelCause(s.ctx)
				timer := time.AfterFunc(200*time.Millisecond, func() { cancel(storage.CauseTimeout) })
				defer timer.Stop()
				began := time.Now()
				err := do(ctx, s.store, "stalled")
				if storage.Classify(err) != storage.ClassTransient || !errors.Is(err, storage.CauseTimeout) {
					t.Errorf("got %v of class %s, want a transient error caused by the timeout", err, storage.Classify(err))
				}
				if took := time.Since(began); took > soon {
					t.Errorf("took %s to notice", took)
				}
				network.Mend(t)
			})
		}
	}
}

// operations are those that every store has, on a key, with a body of 3 MiB.
func operations() map[string]func(context.Context, storage.Storage, string) error {
	return map[string]func(context.Context, storage.Storage, string) error{
		"get": func(ctx context.Context, s storage.Storage, key string) error {
			_, _, err := storage.Get(ctx, s, key)
			return err
		},
		"stat": func(ctx context.Context, s storage.Storage, key string) error {
			_, err := s.Stat(ctx, key, storage.StatOptions{})
			return err
		},
		"set": func(ctx context.Context, s storage.Storage, key string) error {
			_, err := s.SetStream(ctx, key, storage.Stream(noise(83, 3<<20), 3<<20), storage.SetOptions{})
			return err
		},
		"list": func(ctx context.Context, s storage.Storage, _ string) error {
			_, err := s.List(ctx, storage.ListOptions{})
			return err
		},
		"delete": func(ctx context.Context, s storage.Storage, key string) error { return s.Delete(ctx, key) },
	}
}

func (r Remote) slowNetworks(t *testing.T) {
	data := noiseBytes(84, 300_000)
	for _, stream := range []string{"upstream", "downstream"} {
		network := servers.ThroughNetwork(t, r.Address)
		s := r.suite(t, network.Address())
		network.Break(t, servers.Slows(stream, 1000))
		s.set("slow", data)
		s.want("slow", data)
	}
}

// answers asks a server that says the same to everything.
func (r Remote) answers(t *testing.T) {
	semantic, transient := storage.ClassSemantic, storage.ClassTransient
	for status, want := range map[int]struct {
		code  storage.Code
		class storage.Class
	}{
		http.StatusUnauthorized:        {storage.CodeAccessDenied, semantic},
		http.StatusForbidden:           {storage.CodeAccessDenied, semantic},
		http.StatusNotFound:            {storage.CodeKeyNotFound, semantic},
		http.StatusRequestTimeout:      {storage.CodeUnavailable, transient},
		http.StatusTooManyRequests:     {storage.CodeThrottled, transient},
		http.StatusInternalServerError: {storage.CodeUnavailable, transient},
		http.StatusNotImplemented:      {storage.CodeUnsupported, semantic},
		http.StatusBadGateway:          {storage.CodeUnavailable, transient},
		http.StatusServiceUnavailable:  {storage.CodeUnavailable, transient},
		http.StatusInsufficientStorage: {storage.CodeNoSpace, transient},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			_, _ = io.Copy(io.Discard, q.Body)
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
		}))
		s := r.suite(t, strings.TrimPrefix(server.URL, "http://"))
		for name, do := range operations() {
			err := do(s.ctx, s.store, "key")
			if status == http.StatusNotFound && (name == "delete" || name == "list") {
				continue // nothing to delete, or no folder to list
			}
			if storage.Classify(err) != want.class || name != "set" && storage.CodeOf(err) != want.code {
				t.Errorf("%s answered with %d: got %v of class %s, want %s of class %s", name, status, err, storage.Classify(err), want.code, want.class)
			}
			var e *storage.Error
			if errors.As(err, &e) && want.class == transient && e.RetryAfter != 7*time.Second {
				t.Errorf("%s answered with %d: Retry-After is %s", name, status, e.RetryAfter)
			}
		}
		server.Close()
	}
	s := r.suite(t, "127.0.0.1:1")
	for name, do := range operations() {
		err := do(s.ctx, s.store, "key")
		var e *storage.Error
		if storage.Classify(err) != transient || !errors.As(err, &e) || e.Outcome != storage.OutcomeNone {
			t.Errorf("%s, refused a connection: got %v of class %s", name, err, storage.Classify(err))
		}
	}
}

package fallbackuri

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// fake is a store in memory whose calls may be made to fail or wait.
type fake struct {
	storage.Storage

	mu     sync.Mutex
	calls  map[string]int
	before func(ctx context.Context, op string) error
}

func newFake() *fake { return &fake{Storage: memory.New(0), calls: map[string]int{}} }

func (f *fake) set(before func(ctx context.Context, op string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

// fail makes every call fail with err; nil heals the store.
func (f *fake) fail(err error) {
	f.set(func(context.Context, string) error { return err })
}

// hang makes every call wait for the end of its context.
func (f *fake) hang() {
	f.set(func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	})
}

func (f *fake) enter(ctx context.Context, op string) error {
	f.mu.Lock()
	f.calls[op]++
	before := f.before
	f.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(ctx, op)
}

func (f *fake) count(op string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
}

func (f *fake) put(t *testing.T, key, data string) {
	t.Helper()
	if _, err := storage.Set(t.Context(), f.Storage, key, []byte(data), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (f *fake) content(t *testing.T, key string) string {
	t.Helper()
	data, _, err := storage.Get(t.Context(), f.Storage, key)
	if errors.Is(err, storage.ErrKeyNotFound) {
		return ""
	} else if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (f *fake) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	if err := f.enter(ctx, "get"); err != nil {
		return nil, err
	}
	return f.Storage.GetStream(ctx, key, opts)
}

func (f *fake) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	if err := f.enter(ctx, "stat"); err != nil {
		return storage.Info{}, err
	}
	return f.Storage.Stat(ctx, key, opts)
}

func (f *fake) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	if err := f.enter(ctx, "set"); err != nil {
		return storage.Info{}, err
	}
	return f.Storage.SetStream(ctx, key, body, opts)
}

func (f *fake) Delete(ctx context.Context, key string) error {
	if err := f.enter(ctx, "delete"); err != nil {
		return err
	}
	return f.Storage.Delete(ctx, key)
}

func (f *fake) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	if err := f.enter(ctx, "list"); err != nil {
		return storage.ListPage{}, err
	}
	return f.Storage.List(ctx, opts)
}

// rig is a plug-in over fakes a, b and c, whose objects are memory://NAME/k.
type rig struct {
	*Plugin
	t       *testing.T
	a, b, c *fake
	stores  stores
	mu      sync.Mutex
	events  []Event
}

// abc names the object k of each fake.
var abc = ladderOf("memory://a/k", "memory://b/k", "memory://c/k")

func newRig(t *testing.T, policy Policy, more ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, a: newFake(), b: newFake(), c: newFake()}
	r.stores = stores{"a": r.a, "b": r.b, "c": r.c}
	opts := Options{Policy: policy, Resolver: r.stores, Events: r.note}
	for _, change := range more {
		change(&opts)
	}
	p, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	r.Plugin = p
	return r
}

func (r *rig) note(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *rig) told(topic Topic) (list []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Topic == topic {
			list = append(list, e)
		}
	}
	return list
}

func (r *rig) everywhere(data string) {
	r.t.Helper()
	for _, f := range []*fake{r.a, r.b, r.c} {
		f.put(r.t, "k", data)
	}
}

func (r *rig) wantCounts(op string, a, b, c int) {
	r.t.Helper()
	if r.a.count(op) != a || r.b.count(op) != b || r.c.count(op) != c {
		r.t.Fatalf("%s: asked %d, %d and %d times, want %d, %d and %d", op, r.a.count(op), r.b.count(op), r.c.count(op), a, b, c)
	}
}

func (r *rig) wantGet(text, want string) storage.Info {
	r.t.Helper()
	data, info, err := r.Get(r.t.Context(), text)
	if err != nil || string(data) != want {
		r.t.Fatalf("got %q, %v, want %q", data, err, want)
	}
	return info
}

// wantFailure fails the test unless err has the code, and returns its details.
func wantFailure(t *testing.T, err error, code storage.Code) *Failure {
	t.Helper()
	var f *Failure
	if storage.CodeOf(err) != code || !errors.As(err, &f) {
		t.Fatalf("got %v, want %s", err, code)
	}
	return f
}

func unavailable() error {
	return &storage.Error{Code: storage.CodeUnavailable, Status: http.StatusServiceUnavailable, Message: "try again"}
}

func refusal(code storage.Code) error { return storage.Errorf(code, "", "a refusal") }

// link is a store that leads on to another one, which may be set late: the way
// in which a resource can lead back to itself.
type link struct{ to storage.Storage }

func (l *link) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	return l.to.GetStream(ctx, key, opts)
}

func (l *link) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	return l.to.Stat(ctx, key, opts)
}

func (l *link) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	return l.to.SetStream(ctx, key, body, opts)
}

func (l *link) SetPartial(ctx context.Context, key string, offset int64, body storage.Body) (storage.Info, error) {
	return l.to.SetPartial(ctx, key, offset, body)
}
func (l *link) Delete(ctx context.Context, key string) error { return l.to.Delete(ctx, key) }
func (l *link) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	return l.to.List(ctx, opts)
}
func (l *link) Capabilities() storage.Capabilities { return storage.AllCapabilities() }

// nested returns a URI with the candidates in so many fallback URIs.
func nested(levels int, candidates ...string) string {
	for range levels {
		candidates = []string{ladderOf(candidates...)}
	}
	return candidates[0]
}

func shown(text string) string { return uri.Redact(text) }

func contains(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

package muxengine

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// fake is a store in memory whose every call may be made to fail, wait or break.
type fake struct {
	name string
	caps storage.Capabilities

	mu      sync.Mutex
	objects map[string]fakeObject
	calls   map[string]int
	open    int
	uploads []*fakeUpload
	created int
	// salt makes this store's tags of parts differ from others'.
	salt string

	// before is asked before each call; an error is the call's outcome.
	before func(ctx context.Context, op, key string) error
	// breakAfter cuts bodies after so many bytes with breakWith.
	breakAfter int
	breakWith  error
	// stall lets a body wait there for the end of its context instead.
	stall bool
	// stuck lets a body wait there for its end, whatever its context does.
	stuck chan struct{}
	// after is asked once a write has been done.
	after func(ctx context.Context, op string) error
	// readBody, if set, reads a body in place of io.ReadAll.
	readBody func(ctx context.Context, r io.Reader) ([]byte, error)
}

type fakeObject struct {
	data []byte
	info storage.Info
	tags map[string]string
}

func newFake(name string) *fake {
	return &fake{name: name, objects: map[string]fakeObject{}, calls: map[string]int{}, caps: storage.AllCapabilities()}
}

func unavailable() error {
	return &storage.Error{Code: storage.CodeUnavailable, Status: http.StatusServiceUnavailable, Message: "try again"}
}

func notFound(key string) error { return storage.Errorf(storage.CodeKeyNotFound, "", "%s", key) }

func (f *fake) set(before func(ctx context.Context, op, key string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

// fail makes every call fail with err; nil heals the store.
func (f *fake) fail(err error) {
	if err == nil {
		f.set(nil)
		return
	}
	f.set(func(context.Context, string, string) error { return err })
}

// hang makes every call wait for the end of its context.
func (f *fake) hang() {
	f.set(func(ctx context.Context, _, _ string) error {
		<-ctx.Done()
		return ctx.Err()
	})
}

func (f *fake) enter(ctx context.Context, op, key string) error {
	f.mu.Lock()
	f.calls[op]++
	if key == storage.ProbeKey {
		f.calls["probe"]++
	}
	before := f.before
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if before != nil {
		return before(ctx, op, key)
	}
	return nil
}

// count returns how many calls of the operations were made.
func (f *fake) count(ops ...string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, op := range ops {
		n += f.calls[op]
	}
	return n
}

func (f *fake) openBodies() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

func (f *fake) put(key, data string, metadata map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.store(key, []byte(data), storage.SetOptions{Metadata: metadata})
}

func (f *fake) store(key string, data []byte, opts storage.SetOptions) storage.Info {
	sum := md5.Sum(data)
	info := storage.Info{
		Key: key, Size: int64(len(data)), ModTime: time.Now(), ETag: hex.EncodeToString(sum[:]),
		Headers: opts.Headers, Metadata: maps.Clone(opts.Metadata), TagCount: len(opts.Tags),
	}
	f.objects[key] = fakeObject{data: data, info: info, tags: maps.Clone(opts.Tags)}
	return info
}

func (f *fake) remove(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, key)
}

func (f *fake) has(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.objects[key]
	return ok
}

func (f *fake) content(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return string(f.objects[key].data)
}

func (f *fake) Capabilities() storage.Capabilities { return f.caps }

func (f *fake) find(key string, c storage.Conditions) (fakeObject, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.objects[key]
	if !ok {
		return o, notFound(key)
	}
	return o, c.CheckRead(o.info)
}

func (f *fake) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	if err := f.enter(ctx, "stat", key); err != nil {
		return storage.Info{}, err
	}
	o, err := f.find(key, opts.Conditions)
	return o.info, err
}

func (f *fake) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	if err := f.enter(ctx, "get", key); err != nil {
		return nil, err
	}
	o, err := f.find(key, opts.Conditions)
	if err != nil {
		return nil, err
	}
	offset, length := int64(0), o.info.Size
	if opts.Range != nil {
		if offset, length, err = opts.Range.Resolve(o.info.Size); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
	var r io.Reader = bytes.NewReader(o.data[offset : offset+length])
	if f.breakWith != nil {
		r = io.MultiReader(io.LimitReader(r, int64(f.breakAfter)), failing{f.breakWith})
	}
	if f.stall {
		r = io.MultiReader(io.LimitReader(r, int64(f.breakAfter)), readerFunc(func([]byte) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}))
	}
	if stuck := f.stuck; stuck != nil {
		r = io.MultiReader(io.LimitReader(r, int64(f.breakAfter)), readerFunc(func([]byte) (int, error) {
			<-stuck
			return 0, io.EOF
		}))
	}
	return &storage.Object{Info: o.info, Offset: offset, Length: length, Body: &fakeBody{Reader: r, ctx: ctx, fake: f}}, nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type fakeBody struct {
	io.Reader
	ctx  context.Context
	fake *fake
	once sync.Once
}

func (b *fakeBody) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}

func (b *fakeBody) Close() error {
	b.once.Do(func() {
		b.fake.mu.Lock()
		defer b.fake.mu.Unlock()
		b.fake.open--
	})
	return nil
}

func (f *fake) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	if err := f.enter(ctx, "set", key); err != nil {
		return storage.Info{}, err
	}
	data, err := f.read(ctx, body)
	if err != nil {
		return storage.Info{}, err
	}
	f.mu.Lock()
	old, exists := f.objects[key]
	if err := opts.Conditions.CheckWrite(exists, old.info); err != nil {
		f.mu.Unlock()
		return storage.Info{}, err
	}
	info := f.store(key, data, opts)
	after := f.after
	f.mu.Unlock()
	if after != nil {
		if err := after(ctx, "set"); err != nil {
			return storage.Info{}, err
		}
	}
	return info, nil
}

func (f *fake) read(ctx context.Context, body storage.Body) ([]byte, error) {
	r, err := storage.OpenBody(ctx, "SetStream", body, storage.Checksums{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if f.readBody != nil {
		return f.readBody(ctx, r)
	}
	return io.ReadAll(r)
}

func (f *fake) SetPartial(ctx context.Context, key string, offset int64, body storage.Body) (storage.Info, error) {
	if err := f.enter(ctx, "setPartial", key); err != nil {
		return storage.Info{}, err
	}
	data, err := f.read(ctx, body)
	if err != nil {
		return storage.Info{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.objects[key]
	whole := slices.Clone(o.data)
	if need := int(offset) + len(data) - len(whole); need > 0 {
		whole = append(whole, make([]byte, need)...)
	}
	copy(whole[offset:], data)
	return f.store(key, whole, storage.SetOptions{Headers: o.info.Headers, Metadata: o.info.Metadata, Tags: o.tags}), nil
}

func (f *fake) Delete(ctx context.Context, key string) error {
	if err := f.enter(ctx, "delete", key); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.objects, key)
	return nil
}

func (f *fake) DeleteIf(ctx context.Context, key string, conditions storage.Conditions) error {
	if err := f.enter(ctx, "delete", key); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	old, exists := f.objects[key]
	if !exists {
		return notFound(key)
	}
	if err := conditions.CheckWrite(exists, old.info); err != nil {
		return err
	}
	delete(f.objects, key)
	return nil
}

func (f *fake) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	if err := f.enter(ctx, "list", opts.Prefix); err != nil {
		return storage.ListPage{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var page storage.ListPage
	last, n := "", 0
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		if !strings.HasPrefix(key, opts.Prefix) || key <= opts.After {
			continue
		}
		entry := opts.Fold(key)
		if entry != "" && (entry <= opts.After || len(page.Prefixes) > 0 && page.Prefixes[len(page.Prefixes)-1] == entry) {
			continue
		}
		if n == opts.PageLimit() {
			page.Next = last
			break
		}
		n++
		if entry != "" {
			page.Prefixes = append(page.Prefixes, entry)
			last = entry
			continue
		}
		info := f.objects[key].info
		page.Objects = append(page.Objects, storage.Info{Key: key, Size: info.Size, ModTime: info.ModTime, ETag: info.ETag})
		last = key
	}
	return page, nil
}

func (f *fake) GetTags(ctx context.Context, key string) (map[string]string, error) {
	if err := f.enter(ctx, "getTags", key); err != nil {
		return nil, err
	}
	o, err := f.find(key, storage.Conditions{})
	return maps.Clone(o.tags), err
}

func (f *fake) SetTags(ctx context.Context, key string, tags map[string]string) error {
	if err := f.enter(ctx, "setTags", key); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.objects[key]
	if !ok {
		return notFound(key)
	}
	o.tags, o.info.TagCount = maps.Clone(tags), len(tags)
	f.objects[key] = o
	return nil
}

// source returns what is to be copied, if it is what the caller wants.
func (f *fake) source(key string, c storage.Conditions, same func(storage.Info) bool) (fakeObject, error) {
	o, err := f.find(key, c)
	if err == nil && same != nil && !same(o.info) {
		err = storage.Errorf(storage.CodePreconditionFailed, "CopyObject", "another object")
	}
	return o, err
}

func (f *fake) CopyObject(ctx context.Context, key, source string, opts storage.CopyOptions) (storage.Info, error) {
	if err := f.enter(ctx, "copy", key); err != nil {
		return storage.Info{}, err
	}
	o, err := f.source(source, opts.Source, opts.Same)
	if err != nil {
		return storage.Info{}, err
	}
	f.mu.Lock()
	info := f.store(key, o.data, storage.SetOptions{Headers: opts.Headers, Metadata: opts.Metadata, Tags: opts.Tags})
	after := f.after
	f.mu.Unlock()
	if after != nil {
		if err := after(ctx, "copy"); err != nil {
			return storage.Info{}, err
		}
	}
	return info, nil
}

func (f *fake) UploadPartCopy(ctx context.Context, key, upload string, number int, source string, opts storage.CopyPartOptions) (storage.Part, error) {
	if err := f.enter(ctx, "copyPart", key); err != nil {
		return storage.Part{}, err
	}
	o, err := f.source(source, opts.Source, opts.Same)
	if err != nil {
		return storage.Part{}, err
	}
	offset, length := int64(0), o.info.Size
	if opts.Range != nil {
		if offset, length, err = opts.Range.Resolve(o.info.Size); err != nil {
			return storage.Part{}, err
		}
	}
	return f.keepPart(key, upload, number, o.data[offset:offset+length])
}

// rig is a mux over fakes, with what it told.
type rig struct {
	*Mux
	t      *testing.T
	stores []*fake

	mu     sync.Mutex
	events []Event
}

// option changes a rig's configuration before it is made.
type option func(cfg *Config, opts *Options)

func inMode(mode Mode) option {
	return func(cfg *Config, _ *Options) { cfg.Mode = mode }
}

func spread(cfg *Config, _ *Options) { cfg.Keyspace = KeyspaceSpread }

func tryWhenDown(cfg *Config, _ *Options) { cfg.Health.WhenAllDown = WhenAllDownTry }

func withTimeout(d time.Duration) option {
	return func(cfg *Config, _ *Options) { cfg.BackendTimeout = d }
}

func withRetry(attempts int) option {
	return func(cfg *Config, _ *Options) {
		cfg.Retry = Retry{MaxAttempts: attempts, InitialInterval: 10 * time.Millisecond, MaxInterval: 100 * time.Millisecond}
	}
}

func withWeights(weights ...int) option {
	return func(cfg *Config, _ *Options) {
		for i := range cfg.Members {
			cfg.Members[i].Weight = &weights[i]
		}
	}
}

func withMembers(change func(i int, m *Member)) option {
	return func(cfg *Config, _ *Options) {
		for i := range cfg.Members {
			change(i, &cfg.Members[i])
		}
	}
}

// newRig makes a failover mux over n fakes named a, b, c, ...
func newRig(t *testing.T, n int, options ...option) *rig {
	t.Helper()
	r := &rig{t: t}
	cfg := Config{Name: "mux", Mode: ModeFailover}
	opts := Options{Events: r.note}
	for i := range n {
		f := newFake(string(rune('a' + i)))
		r.stores = append(r.stores, f)
		cfg.Members = append(cfg.Members, Member{Name: f.name, Storage: f})
	}
	for _, o := range options {
		o(&cfg, &opts)
	}
	m, err := New(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	r.Mux = m
	t.Cleanup(m.Close)
	return r
}

func (r *rig) note(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// told returns the events of the topic so far.
func (r *rig) told(topic Topic) []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Event
	for _, e := range r.events {
		if e.Topic == topic {
			list = append(list, e)
		}
	}
	return list
}

func (r *rig) get(key string) (string, error) {
	data, _, err := storage.Get(context.Background(), r.Mux, key)
	return string(data), err
}

func (r *rig) mustGet(key, want string) {
	r.t.Helper()
	got, err := r.get(key)
	if err != nil || got != want {
		r.t.Fatalf("get %q: got %q, %v; want %q", key, got, err, want)
	}
}

func (r *rig) put(key, data string) error {
	_, err := storage.Set(context.Background(), r.Mux, key, []byte(data), storage.SetOptions{})
	return err
}

func (r *rig) mustPut(key, data string) {
	r.t.Helper()
	if err := r.put(key, data); err != nil {
		r.t.Fatalf("put %q: %v", key, err)
	}
}

// everywhere stores the same object in all fakes.
func (r *rig) everywhere(key, data string) {
	for _, f := range r.stores {
		f.put(key, data, map[string]string{versionKey: "v1"})
	}
}

func (r *rig) member(name string) MemberStats {
	r.t.Helper()
	for _, m := range r.Stats().Members {
		if m.Name == name {
			return m
		}
	}
	r.t.Fatalf("no member %q", name)
	return MemberStats{}
}

func wantCode(t *testing.T, err error, code storage.Code) {
	t.Helper()
	if storage.CodeOf(err) != code {
		t.Fatalf("got error %v, want code %s", err, code)
	}
}

func wantCounts(t *testing.T, stores []*fake, op string, want ...int) {
	t.Helper()
	var got []int
	for _, f := range stores {
		got = append(got, f.count(op))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("calls of %s: got %v, want %v", op, got, want)
	}
}

// once is a body that can be read once.
func once(data string) storage.Body {
	return storage.Stream(strings.NewReader(data), int64(len(data)))
}

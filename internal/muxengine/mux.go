package muxengine

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Mux is a storage.Storage over several others. All methods are safe for
// concurrent use. Its errors are *storage.Error.
type Mux struct {
	opts Options
	rand func() uint64
	base time.Time
	core *core

	// node is the tree as requests see it; they load it once.
	node atomic.Pointer[node]

	// applying is held by whatever changes the configuration; it comes
	// before the mu of states, and those before renewing and registry.
	applying sync.Mutex
	// renewing is held while node is replaced.
	renewing sync.Mutex

	registry sync.Mutex
	states   map[string]*state
	watchers map[*Mux]int

	// What runs in the background ends with ctx.
	ctx       context.Context
	cancel    context.CancelFunc
	closing   sync.Mutex
	closed    atomic.Bool
	waitGroup sync.WaitGroup
}

var _ storage.Storage = (*Mux)(nil)

// New makes a mux of cfg. It fails with one of the codes that Config names, or
// RECURSION_DEPTH_EXCEEDED. Active checks begin at once; Close ends them.
func New(cfg Config, opts Options) (*Mux, error) {
	full := complete(cfg)
	if err := validate(full, "", 1, map[string]bool{}); err != nil {
		return nil, err
	}
	m := &Mux{
		opts: opts, rand: opts.Rand, base: time.Now(), core: &core{},
		states: map[string]*state{}, watchers: map[*Mux]int{},
	}
	if m.rand == nil {
		m.rand = rand.Uint64
	}
	if m.opts.Spool == nil {
		m.opts.Spool = NewMemorySpool(DefaultSpoolBudget)
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.applying.Lock()
	defer m.applying.Unlock()
	m.install(full)
	return m, nil
}

// now is the time since the mux was made, in nanoseconds. It is never 0.
func (m *Mux) now() int64 { return int64(time.Since(m.base)) + 1 }

// Close ends active checks and probes and waits for them. Requests in flight go
// on; later ones fail with ALL_BACKENDS_DOWN. A nested *Mux is left open.
func (m *Mux) Close() {
	m.closing.Lock()
	first := !m.closed.Swap(true)
	m.cancel()
	m.closing.Unlock()
	m.waitGroup.Wait()
	if !first {
		return
	}
	m.watch(m.node.Load(), -1)
	for _, st := range m.allStates() {
		st.stopTimer()
	}
}

// background runs f on a goroutine of its own, which Close ends and waits for.
// It reports false if the mux is closed.
func (m *Mux) background(f func(ctx context.Context)) bool {
	m.closing.Lock()
	defer m.closing.Unlock()
	if m.closed.Load() {
		return false
	}
	m.waitGroup.Go(func() { f(m.ctx) })
	return true
}

// Capabilities returns the weakest over all members, whatever their health.
func (m *Mux) Capabilities() storage.Capabilities { return m.node.Load().caps }

// GetStream implements storage.Storage. A body that breaks is resumed on the
// next member if that one holds the same version.
func (m *Mux) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	rep, err := m.node.Load().do(ctx, &request{op: opGet, key: key, get: opts}, nil)
	if err != nil {
		return nil, err
	}
	m.hide(&rep.obj.Info)
	return rep.obj, nil
}

// SetStream implements storage.Storage. A body that cannot be read again is
// kept in Options.Spool as far as that has room.
func (m *Mux) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	n := m.node.Load()
	req := &request{op: opSet, key: key, set: &opts}
	if err := n.refuseTags(req.op, req.set); err != nil {
		return storage.Info{}, err
	}
	m.giveVersion(n, req)
	req.nameSource(n)
	return m.write(ctx, n, req, body)
}

// SetPartial implements storage.Storage.
func (m *Mux) SetPartial(ctx context.Context, key string, offset int64, body storage.Body) (storage.Info, error) {
	return m.write(ctx, m.node.Load(), &request{op: opSetPartial, key: key, offset: offset}, body)
}

// keptForOne is the longest body that is kept where there is one leaf, which is all
// that it could be sent to again. A longer one is not worth the copy: a store that
// does not want it says so before it is sent.
const keptForOne = 1 << 20

func (m *Mux) write(ctx context.Context, n *node, req *request, body storage.Body) (storage.Info, error) {
	spool := m.opts.Spool
	if n.leaves == 1 && body.Size() > keptForOne {
		spool = nil
	}
	kept := newContent(body, spool)
	defer kept.close()
	req.body = kept
	rep, err := n.do(ctx, req, nil)
	m.hide(&rep.info)
	if err == nil && rep.info.Version == "" && n.caps.Metadata {
		rep.info.Version = req.version
	}
	return rep.info, err
}

// DeleteIf implements storage.ConditionalDeleter, with an arbiter as conditional
// writes have it.
func (m *Mux) DeleteIf(ctx context.Context, key string, conditions storage.Conditions) error {
	_, err := m.node.Load().do(ctx, &request{op: opDelete, key: key, get: storage.GetOptions{Conditions: conditions}}, nil)
	return err
}

// Delete implements storage.Storage. In keyspace spread it succeeds only if
// every member confirms it.
func (m *Mux) Delete(ctx context.Context, key string) error {
	_, err := m.node.Load().do(ctx, &request{op: opDelete, key: key}, nil)
	return err
}

// List implements storage.Storage. In keyspace spread it merges the listings of
// all members.
func (m *Mux) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	req := &request{op: opList, list: &opts}
	pin := storage.ListPinOf(ctx)
	if pin != nil {
		req.pin = pin.Member
	}
	rep, err := m.node.Load().do(ctx, req, nil)
	if pin != nil && err == nil {
		pin.Member = rep.info.ServedBy
	}
	if err != nil {
		return storage.ListPage{}, err
	}
	return *rep.page, nil
}

// Stat implements storage.Storage.
func (m *Mux) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	rep, err := m.node.Load().do(ctx, &request{op: opStat, key: key, get: storage.GetOptions{Conditions: opts.Conditions}}, nil)
	m.hide(&rep.info)
	return rep.info, err
}

// emit sends an event to the sink.
func (m *Mux) emit(e Event) {
	if m.opts.Events == nil {
		return
	}
	e.Time = time.Now()
	m.opts.Events(e)
}

// emit sends an event about the mux as a whole.
func (n *node) emit(e Event) {
	e.Mux, e.Path = n.cfg.Name, n.path
	n.mux.emit(e)
}

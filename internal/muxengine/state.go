package muxengine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// core is what belongs to a mux itself and survives its reloads.
type core struct {
	calls, failovers, partials atomic.Uint64
	resumes, broken            atomic.Uint64
	turns                      atomic.Uint64
	clock                      atomic.Int64
}

// state is the runtime state of one identity. Everything that a request touches
// is atomic; changes of health and drain, and the events that tell of them, are
// made one after another under mu.
type state struct {
	mux *Mux
	id  string
	// member is the latest configuration of this identity.
	member atomic.Pointer[member]
	core   *core

	gate
	figures
	phase atomic.Int32
	// health is of all operations, space only of those that bring bytes.
	health, space breaker
	transition    atomic.Int64
	lastError     atomic.Pointer[LastError]

	mu    sync.Mutex
	drain drainage
	// drained is the part of drain that Stats shows.
	drained atomic.Pointer[DrainStats]
	check   *checker
	// idle probes a member that is down and that nobody asks.
	idle *time.Timer

	running runningList
}

func newState(m *Mux) *state {
	return &state{mux: m, core: &core{}, gate: gate{freed: make(chan struct{}, 1)}}
}

// claim is the right of an attempt to judge its member.
type claim struct{ health, space verdict }

// admission is what a member answers to a request that wants in.
type admission int

const (
	admitted admission = iota
	isDown
	isFull
	isDraining
)

// admit counts a request of op in, unless the member is down, full, or leaving.
// Of a member that is down it takes the one probe, if that is due or force is
// set. What was admitted ends with release.
func (st *state) admit(op operation, force bool) (claim, admission) {
	var c claim
	var ok bool
	if c.health = st.health.begin(); st.health.down.Load() {
		if c.health, ok = st.health.claim(st.mux.now(), force); !ok {
			return claim{}, isDown
		}
	}
	if op.needsSpace() {
		if c.space = st.space.begin(); st.space.down.Load() {
			if c.space, ok = st.space.claim(st.mux.now(), force); !ok {
				st.health.release(c.health)
				return claim{}, isDown
			}
		}
	}
	if !st.enter() {
		st.forget(c)
		return claim{}, isFull
	}
	if !st.open(op) {
		st.forget(c)
		st.release()
		return claim{}, isDraining
	}
	return c, admitted
}

// open reports whether the member takes requests of op at all. Uploads that have
// begun on it go on while it drains.
func (st *state) open(op operation) bool {
	switch DrainPhase(st.phase.Load()) {
	case DrainGranted:
		return op.continues()
	case DrainWritesRefused:
		return op.continues() || !op.needsSpace()
	default:
		return true
	}
}

// release counts a request out.
func (st *state) release() {
	if st.leave() == 0 && DrainPhase(st.phase.Load()) == DrainGranted {
		st.settleDrain()
	}
}

// forget gives back a right without a verdict.
func (st *state) forget(c claim) {
	st.health.release(c.health)
	st.space.release(c.space)
}

// judge draws from err, the outcome of an attempt, what it says about the
// member's health. Semantic errors are answers, and aborts say nothing.
func (st *state) judge(c claim, err error) {
	class := storage.Classify(err)
	switch {
	case class == storage.ClassAbort, errors.Is(err, storage.ErrBackendDraining):
		st.forget(c)
	case class != storage.ClassTransient:
		st.succeeded(c, err == nil)
	case neutral(err):
		st.forget(c)
	case errors.Is(err, storage.ErrNoSpace):
		st.succeeded(claim{health: c.health}, false)
		st.failed(&st.space, c.space, err)
	default:
		st.space.release(c.space)
		st.failed(&st.health, c.health, err)
	}
}

func (st *state) succeeded(c claim, wrote bool) {
	if c.space.probe && !wrote {
		st.space.release(c.space)
		c.space.probe = false
	}
	if !c.health.probe && !c.space.probe {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	now := st.mux.now()
	if recovered, since := st.health.succeed(c.health, now); recovered {
		st.recovered(now, since)
	}
	if recovered, since := st.space.succeed(c.space, now); recovered {
		st.recovered(now, since)
	}
}

func (st *state) failed(b *breaker, v verdict, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	now := st.mux.now()
	health := st.member.Load().health
	counted, tookDown := b.fail(v, now, health.Cooldown, health.MaxCooldown, retryAfterOf(err))
	if !counted {
		return
	}
	st.setLastError(err)
	st.mux.refresh()
	if tookDown {
		st.wentDown(now, storage.CodeOf(err), err)
	}
	if b == &st.health {
		st.armIdleProbe(now)
	}
}

func (st *state) setLastError(err error) {
	last := Describe(err)
	st.lastError.Store(&last)
}

// recovered and wentDown are called with mu held, after the change.
func (st *state) recovered(now, since int64) {
	st.transition.Store(now)
	st.mux.refresh()
	st.emit(Event{Topic: TopicBackendRecovered, DownFor: time.Duration(now - since)})
}

func (st *state) wentDown(now int64, code storage.Code, cause error) {
	st.transition.Store(now)
	if code == "" {
		code = storage.CodeUnavailable
	}
	st.emit(Event{Topic: TopicBackendDown, Code: code, Cause: cause})
}

// tell sends an event about this member that goes with no change of its health.
func (st *state) tell(e Event) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.emit(e)
}

// emit sends an event about this member; mu is held.
func (st *state) emit(e Event) {
	m := st.member.Load()
	e.Mux, e.Path, e.Name = m.muxName, m.muxPath, m.name
	st.mux.emit(e)
}

// runningList holds the attempts that are in flight on a member, so that a
// drain can end them.
type runningList struct {
	mu     sync.Mutex
	first  *attempt
	closed bool
}

func (l *runningList) add(a *attempt) {
	l.mu.Lock()
	closed := l.closed
	a.next = l.first
	if l.first != nil {
		l.first.prev = a
	}
	l.first = a
	l.mu.Unlock()
	if closed {
		a.drain()
	}
}

func (l *runningList) remove(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.prev != nil {
		a.prev.next = a.next
	} else if l.first == a {
		l.first = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	}
	a.prev, a.next = nil, nil
}

// cancel ends what is running, and with closed also what was admitted but is
// not running yet.
func (l *runningList) cancel() {
	l.mu.Lock()
	l.closed = true
	var running []*attempt
	for a := l.first; a != nil; a = a.next {
		running = append(running, a)
	}
	l.mu.Unlock()
	for _, a := range running {
		a.drain()
	}
}

func (l *runningList) reopen() {
	l.mu.Lock()
	l.closed = false
	l.mu.Unlock()
}

// waitRoom waits until a member at its limit has room for a write.
func (st *state) waitRoom(ctx context.Context, op operation) (claim, admission) {
	if !st.wait(ctx) {
		return claim{}, isFull
	}
	cl := claim{health: st.health.begin(), space: st.space.begin()}
	switch {
	case !st.open(op):
		st.release()
		return claim{}, isDraining
	case st.health.down.Load(), op.carriesBody() && st.space.down.Load():
		st.release()
		return claim{}, isDown
	}
	return cl, admitted
}

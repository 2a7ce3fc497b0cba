package muxengine

import (
	"context"
	"errors"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// probeInBackground probes the member, and every leaf below it, that is due. A
// leaf has at most one probe at a time.
func (m *member) probeInBackground(now int64) {
	if below := m.below(); below != nil {
		if now < below.due {
			return
		}
		for _, inner := range below.members {
			if !inner.granted() {
				inner.probeInBackground(now)
			}
		}
		return
	}
	if !m.state.health.due(now) {
		return
	}
	v, ok := m.state.health.claim(now, false)
	if !ok {
		return
	}
	if !m.state.mux.background(func(ctx context.Context) { m.probe(ctx, v) }) {
		m.state.health.release(v)
	}
}

// armIdleProbe sets the clock for the probe that happens without a request; mu
// is held.
func (st *state) armIdleProbe(now int64) {
	until := st.health.until.Load()
	if st.mux.opts.IdleProbe <= 0 || until == never || st.drain.removed || st.mux.closed.Load() {
		return
	}
	wait := max(0, time.Duration(until-now)) + st.mux.opts.IdleProbe
	if st.idle == nil {
		st.idle = time.AfterFunc(wait, st.idleProbe)
	} else {
		st.idle.Reset(wait)
	}
}

// idleProbe probes the member if it is still down, and looks again later.
func (st *state) idleProbe() {
	if !st.health.down.Load() {
		return
	}
	now := st.mux.now()
	if m := st.member.Load(); !m.granted() {
		m.probeInBackground(now)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.armIdleProbe(now)
}

// probeBeforeWrite is probe for a write, which waits for the verdict no longer
// than for its place: a leaf that hangs must not hold it up for a whole time limit.
func (m *member) probeBeforeWrite(ctx context.Context, v verdict) bool {
	alive := make(chan bool, 1)
	if !m.state.mux.background(func(ctx context.Context) { alive <- m.probe(ctx, v) }) {
		m.state.health.release(v)
		return false
	}
	timer := time.NewTimer(writeWait)
	defer timer.Stop()
	select {
	case is := <-alive:
		return is
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// probe asks a leaf that is down whether it is alive, on the right v, and
// judges it by the answer. It reports whether the leaf is.
func (m *member) probe(ctx context.Context, v verdict) bool {
	err := m.ask(ctx, m.timeout)
	m.state.judge(claim{health: v}, err)
	class := storage.Classify(err)
	return class == storage.ClassNone || class == storage.ClassSemantic
}

// ask asks a leaf for the reserved key. There is never an object under it, so
// that its absence is a good answer.
func (m *member) ask(parent context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(parent, limit, storage.CauseTimeout)
	defer cancel()
	err := m.apart(ctx, func(ctx context.Context) error {
		_, err := m.leaf.Stat(ctx, storage.ProbeKey, storage.StatOptions{})
		return err
	})
	switch {
	case err == nil, errors.Is(err, storage.ErrKeyNotFound):
		return nil
	case parent.Err() != nil:
		return storage.Errorf(storage.CodeBackendAborted, "Stat", "the probe was given up").WithCause(context.Cause(parent))
	case ctx.Err() != nil:
		return storage.Errorf(storage.CodeBackendTimeout, "Stat", "no answer to a probe for %s", limit).WithCause(storage.CauseTimeout)
	}
	return annotate(err, opStat, m, "", 0, 1)
}

// apart calls f. On a leaf that may ignore the end of ctx it does not wait for f
// any longer than that.
func (m *member) apart(ctx context.Context, f func(ctx context.Context) error) error {
	if !m.cfg.MayBlock {
		return f(ctx)
	}
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

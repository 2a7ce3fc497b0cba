package muxengine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// checker is the running active check of one leaf. A reload that changes only
// what is checked does not disturb the rhythm.
type checker struct {
	state    *state
	interval time.Duration
	member   atomic.Pointer[member]
	cancel   context.CancelFunc
}

// setCheck starts, restarts or stops the active check as m asks for.
func (st *state) setCheck(m *member, wanted bool) {
	wanted = wanted && m.leaf != nil && m.cfg.HealthCheck.Interval > 0
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.check != nil {
		if wanted && st.check.interval == m.cfg.HealthCheck.Interval {
			st.check.member.Store(m)
			return
		}
		st.check.cancel()
		st.check = nil
		if !wanted && st.health.checkOnly.Load() {
			// Nobody is left who could find the member healthy.
			st.health.checkOnly.Store(false)
			st.health.until.Store(st.mux.now())
			st.mux.refresh()
		}
	}
	if !wanted {
		return
	}
	ctx, cancel := context.WithCancel(st.mux.ctx)
	c := &checker{state: st, interval: m.cfg.HealthCheck.Interval, cancel: cancel}
	c.member.Store(m)
	st.check = c
	st.mux.background(func(context.Context) { c.run(ctx) })
}

// run checks the leaf until ctx ends.
func (c *checker) run(ctx context.Context) {
	ticker := time.NewTicker(c.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.state.checked(ctx, c.check(ctx))
		}
	}
}

// check asks once. Unlike for requests, an answer that means no is a failure
// too: bad credentials are nothing that a healthy backend has.
func (c *checker) check(parent context.Context) error {
	m := c.member.Load()
	limit := m.cfg.HealthCheck.Timeout
	if limit <= 0 {
		limit = m.cfg.HealthCheck.Interval
	}
	own, ok := m.leaf.(storage.Checker)
	if !ok {
		return m.ask(parent, limit)
	}
	ctx, cancel := context.WithTimeoutCause(parent, limit, storage.CauseTimeout)
	defer cancel()
	err := m.apart(ctx, own.Check)
	if errors.Is(err, storage.ErrKeyNotFound) {
		return nil
	}
	return err
}

// checked tells the member's health how an active check went.
func (st *state) checked(ctx context.Context, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	now := st.mux.now()
	if err == nil {
		if recovered, since := st.health.passCheck(now); recovered {
			st.recovered(now, since)
		}
		return
	}
	failed := storage.Errorf(storage.CodeHealthcheckFailed, "Check", "the health check failed").WithCause(err)
	failed.Backend = st.member.Load().path
	st.setLastError(failed)
	tookDown := st.health.failCheck(now)
	st.mux.refresh()
	if tookDown {
		st.wentDown(now, storage.CodeHealthcheckFailed, failed)
	}
}

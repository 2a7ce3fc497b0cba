package muxengine

import (
	"context"
	"errors"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// checker is the running active check of one leaf.
type checker struct {
	member *member
	cancel context.CancelFunc
}

// setCheck starts, restarts or stops the active check as m asks for.
func (st *state) setCheck(m *member, wanted bool) {
	wanted = wanted && m.leaf != nil && m.cfg.HealthCheck.Interval > 0
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.check != nil {
		old := st.check.member
		if wanted && old.cfg.HealthCheck == m.cfg.HealthCheck && old.leaf == m.leaf {
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
	st.check = &checker{member: m, cancel: cancel}
	st.mux.background(func(context.Context) { (&checker{member: m}).run(ctx) })
}

// run checks the leaf until ctx ends.
func (c *checker) run(ctx context.Context) {
	ticker := time.NewTicker(c.member.cfg.HealthCheck.Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.member.state.checked(c.check(ctx), ctx)
		}
	}
}

// check asks once. Unlike for requests, an answer that means no is a failure
// too: bad credentials are nothing that a healthy backend has.
func (c *checker) check(parent context.Context) error {
	m := c.member
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
func (st *state) checked(err error, ctx context.Context) {
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

package muxengine

import (
	"context"
	"slices"

	"github.com/suaveplan/storagemux/internal/storage"
)

// AddBackend appends a member. A name that is taken, also by a member that is
// draining, is BACKEND_NAME_CONFLICT.
func (m *Mux) AddBackend(member Member) error {
	m.applying.Lock()
	defer m.applying.Unlock()
	cfg := m.config()
	cfg.Members = append(cfg.Members, member)
	return m.apply(cfg)
}

// RemoveBackend drains the member and takes it out, without waiting for the
// requests on it: those may go on for its DrainTimeout.
func (m *Mux) RemoveBackend(name string) error {
	m.applying.Lock()
	defer m.applying.Unlock()
	return m.remove(name)
}

// remove is RemoveBackend with applying held. What is left may be less than the
// mode asks for: calls then fail at once.
func (m *Mux) remove(name string) error {
	cfg := m.config()
	i, err := find(&cfg, name)
	if err != nil {
		return err
	}
	cfg.Members = slices.Delete(cfg.Members, i, i+1)
	m.install(&cfg)
	return nil
}

// SetWeight changes a member's weight.
func (m *Mux) SetWeight(name string, weight int) error {
	m.applying.Lock()
	defer m.applying.Unlock()
	cfg := m.config()
	i, err := find(&cfg, name)
	if err != nil {
		return err
	}
	if weight < 0 {
		return configError(&cfg, storage.CodeInvalidWeight, name, "the weight of %q is %d and must not be negative", name, weight)
	}
	cfg.Members[i].Weight = &weight
	return m.apply(cfg)
}

// config returns a copy of the configuration whose members may be changed.
func (m *Mux) config() Config {
	cfg := *m.node.Load().cfg
	cfg.Members = slices.Clone(cfg.Members)
	return cfg
}

func find(cfg *Config, name string) (int, error) {
	for i := range cfg.Members {
		if cfg.Members[i].Name == name {
			return i, nil
		}
	}
	return 0, configError(cfg, storage.CodeBackendNotFound, name, "there is no backend %q", name)
}

// Drain takes the member out of the choice, waits until nothing is in flight on
// it, and removes it. A second call joins the first. When ctx ends it returns
// BACKEND_ABORTED and the member stays draining.
func (m *Mux) Drain(ctx context.Context, name string) error {
	wait, err := m.startDrain(name)
	if err != nil {
		return err
	}
	select {
	case <-wait.over:
	case <-ctx.Done():
		e := storage.Errorf(storage.CodeBackendAborted, "Drain", "the drain of %q goes on", name).WithCause(context.Cause(ctx))
		e.Backend = name
		return e
	}
	if !wait.removed.Load() {
		e := storage.Errorf(storage.CodeBackendDraining, "Drain", "the drain of %q was cancelled", name)
		e.Backend = name
		return e
	}
	return nil
}

// startDrain grants the drain of a member, unless that has been done.
func (m *Mux) startDrain(name string) (*drainWait, error) {
	m.applying.Lock()
	defer m.applying.Unlock()
	cfg := m.config()
	i, err := find(&cfg, name)
	if err != nil {
		return nil, err
	}
	if cfg.Members[i].Drain.Phase != DrainGranted {
		cfg.Members[i].Drain = Drain{Phase: DrainGranted}
		m.install(&cfg)
	}
	st := m.node.Load().members[i].state
	return st.awaitDrain(func() {
		m.background(func(context.Context) { m.removeDrained(name, st) })
	}), nil
}

// removeDrained takes a member out whose drain has completed, if it is still to go.
func (m *Mux) removeDrained(name string, st *state) {
	m.applying.Lock()
	defer m.applying.Unlock()
	for _, b := range m.node.Load().members {
		if b.name == name && b.state == st && b.drain.Phase == DrainGranted {
			_ = m.remove(name)
		}
	}
}

// CancelDrained ends the requests that are in flight on a draining member with
// BACKEND_DRAINING, which has no effect on its health.
func (m *Mux) CancelDrained(name string) error {
	for _, b := range m.node.Load().members {
		if b.name == name && b.granted() {
			b.state.cancelRunning()
			return nil
		}
	}
	return configError(m.node.Load().cfg, storage.CodeBackendNotFound, name, "there is no draining backend %q", name)
}

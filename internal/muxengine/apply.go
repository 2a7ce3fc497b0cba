package muxengine

import (
	"maps"
	"slices"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Apply replaces the whole topology in one step. Requests that have begun keep
// the old one; runtime state is kept by Member.ID; members that are left out
// are drained in the background. On error nothing has changed.
func (m *Mux) Apply(cfg Config) error {
	m.applying.Lock()
	defer m.applying.Unlock()
	return m.apply(cfg)
}

// apply is Apply with applying held.
func (m *Mux) apply(cfg Config) error {
	full := complete(cfg)
	if err := validate(full, "", m.depthAbove(), map[string]bool{}); err != nil {
		return err
	}
	if m.loops(full) {
		return configError(full, storage.CodeRecursionDepthExceeded, "", "the mux contains itself")
	}
	m.install(full)
	return nil
}

// install makes cfg, which is complete and valid, what requests see, and tells
// what is different.
func (m *Mux) install(cfg *Config) {
	before := m.node.Load()
	after := build(m, cfg, m.core, "", m.stateOf)
	m.watch(after, +1)
	known := index(before)
	after.walkMembers(func(b *member) {
		st := b.state
		st.member.Store(b)
		if b.leaf != nil {
			st.limit.Store(int64(b.cfg.MaxInFlight))
		}
		if b.drain.Phase == DrainNone {
			// What is back must be open before a request can choose it.
			st.setDrain(b.drain, false)
		}
	})
	m.swap(after)
	m.watch(before, -1)

	present := index(after)
	after.walkMembers(func(b *member) {
		st := b.state
		switch a := known[st]; {
		case before != nil && a == nil:
			st.tell(Event{Topic: TopicBackendAdded, Weight: b.cfg.Weight})
		case a != nil && a.weight != b.weight:
			st.tell(Event{Topic: TopicWeightChanged, FromWeight: a.weight, ToWeight: b.weight})
		}
		if b.drain.Phase != DrainNone {
			st.setDrain(b.drain, false)
		}
		st.setCheck(b, b.drain.Phase != DrainGranted)
	})
	if before == nil {
		return
	}
	before.walkMembers(func(b *member) {
		if present[b.state] == nil {
			b.state.setCheck(b, false)
			b.state.setDrain(b.parting(), true)
		}
	})
}

// parting is the drain of a member that the configuration has left out.
func (b *member) parting() Drain {
	d := Drain{Phase: DrainGranted, Deadline: b.drain.Deadline}
	if b.drain.Phase != DrainGranted {
		d.Deadline = time.Now().Add(b.cfg.DrainTimeout)
	}
	return d
}

func index(n *node) map[*state]*member {
	members := map[*state]*member{}
	if n != nil {
		n.walkMembers(func(b *member) { members[b.state] = b })
	}
	return members
}

// swap makes n, with the members' health as it is now, what requests see.
func (m *Mux) swap(n *node) {
	m.renewing.Lock()
	m.node.Store(n.renew())
	m.renewing.Unlock()
	m.tellWatchers()
}

// refresh takes over a change of a member's health.
func (m *Mux) refresh() {
	m.renewing.Lock()
	if n := m.node.Load(); n != nil {
		m.node.Store(n.renew())
	}
	m.renewing.Unlock()
	m.tellWatchers()
}

// stateOf returns the state of an identity, a new one if it has none.
func (m *Mux) stateOf(id string) *state {
	m.registry.Lock()
	st := m.states[id]
	m.registry.Unlock()
	if st != nil && st.revive() {
		return st
	}
	st = newState(m)
	m.registry.Lock()
	defer m.registry.Unlock()
	m.states[id] = st
	st.id = id
	return st
}

// forgetState makes the identity of a member free that has been removed.
func (m *Mux) forgetState(st *state) {
	m.registry.Lock()
	defer m.registry.Unlock()
	if m.states[st.id] == st {
		delete(m.states, st.id)
	}
}

func (m *Mux) allStates() []*state {
	m.registry.Lock()
	defer m.registry.Unlock()
	return slices.Collect(maps.Values(m.states))
}

// watch makes m learn, or no longer learn, of changes in the muxes of others
// that are members somewhere in n.
func (m *Mux) watch(n *node, by int) {
	if n == nil {
		return
	}
	n.walkMembers(func(b *member) {
		if b.foreign == nil {
			return
		}
		b.foreign.registry.Lock()
		defer b.foreign.registry.Unlock()
		if b.foreign.watchers[m] += by; b.foreign.watchers[m] == 0 {
			delete(b.foreign.watchers, m)
		}
	})
}

func (m *Mux) tellWatchers() {
	for _, w := range m.watching() {
		w.refresh()
	}
}

func (m *Mux) watching() []*Mux {
	m.registry.Lock()
	defer m.registry.Unlock()
	return slices.Collect(maps.Keys(m.watchers))
}

// depth is the number of muxes from m down to its deepest leaf.
func (m *Mux) depth() int { return m.node.Load().depth() }

func (n *node) depth() int {
	deepest := 0
	for _, b := range n.members {
		if below := b.below(); below != nil {
			deepest = max(deepest, below.depth())
		}
	}
	return deepest + 1
}

// depthAbove is the number of muxes from the outermost one that m is nested in
// down to m.
func (m *Mux) depthAbove() int {
	deepest := 0
	for _, w := range m.watching() {
		deepest = max(deepest, w.depthAbove())
	}
	return deepest + 1
}

// loops reports whether a mux that cfg names contains m.
func (m *Mux) loops(cfg *Config) bool {
	for i := range cfg.Members {
		b := &cfg.Members[i]
		if b.Mux != nil && m.loops(b.Mux) {
			return true
		}
		if foreign, ok := b.Storage.(*Mux); ok && (foreign == m || m.loops(foreign.node.Load().cfg)) {
			return true
		}
	}
	return false
}

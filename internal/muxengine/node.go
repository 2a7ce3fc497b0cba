package muxengine

import (
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/suaveplan/storagemux/internal/storage"
)

// node is one mux of the tree as requests see it: its configuration and which
// of its members are up. It is immutable; every change makes new nodes from the
// outermost mux down to where it happened.
type node struct {
	mux  *Mux
	cfg  *Config
	core *core
	path string
	mode *mode

	members []*member
	caps    storage.Capabilities
	leaves  int
	// multipart: every leaf takes uploads in parts.
	multipart bool

	// reads and writes are the members that may be chosen: for bodies to be
	// stored, and for all else.
	reads, writes set
	// due is the first moment at which a member that is down, at any depth,
	// may be probed, and spaceDue that for writing to one without space.
	due, spaceDue int64
}

// member is one entry of a mux's list. It is immutable but for what state
// points to.
type member struct {
	name, path       string
	muxName, muxPath string
	index            uint8
	cfg              *Member
	state            *state
	seed             uint64

	leaf    storage.Storage
	nested  *node
	foreign *Mux

	weight  int
	timeout time.Duration
	health  Health
	retry   *retrier
	drain   Drain
	caps    storage.Capabilities
}

// below returns the mux that the member is, or nil for a leaf.
func (m *member) below() *node {
	if m.foreign != nil {
		return m.foreign.node.Load()
	}
	return m.nested
}

// storage returns what requests are made of where the member is no mux that the
// engine built.
func (m *member) storage() storage.Storage {
	if m.foreign != nil {
		return m.foreign
	}
	return m.leaf
}

// build makes the node of cfg, which is valid, and of everything below it.
// stateOf gives the state of an identity.
func build(mux *Mux, cfg *Config, c *core, path string, stateOf func(id string) *state) *node {
	n := &node{
		mux: mux, cfg: cfg, core: c, path: path, mode: modes[cfg.Mode],
		caps: storage.AllCapabilities(), multipart: true,
	}
	for i := range cfg.Members {
		m := newMember(n, &cfg.Members[i], uint8(i), stateOf)
		n.members = append(n.members, m)
		n.caps = n.caps.Weakest(m.caps)
		if below := m.below(); below != nil {
			n.leaves += below.leaves
			n.multipart = n.multipart && below.multipart
		} else {
			n.leaves++
			_, takesParts := m.leaf.(storage.Multipart)
			n.multipart = n.multipart && takesParts
		}
	}
	// A condition that one member can check says nothing about the others.
	n.caps.ConditionalWrite = n.caps.ConditionalWrite && !n.spread()
	n.survey()
	return n
}

func newMember(n *node, cfg *Member, index uint8, stateOf func(id string) *state) *member {
	m := &member{
		name: cfg.Name, path: join(n.path, cfg.Name), muxName: n.cfg.Name, muxPath: n.path,
		index: index, cfg: cfg, timeout: cfg.Timeout, health: n.cfg.Health, drain: cfg.Drain,
	}
	if m.timeout <= 0 {
		m.timeout = n.cfg.BackendTimeout
	}
	if cfg.Weight != nil {
		m.weight = *cfg.Weight
	}
	kind := "leaf:"
	if _, ok := cfg.Storage.(*Mux); ok || cfg.Mux != nil {
		kind = "mux:"
	}
	m.state = stateOf(kind + identity(cfg, m.path))
	m.seed = xxhash.Sum64String(m.name)
	switch s := cfg.Storage.(type) {
	case nil:
		m.nested = build(n.mux, cfg.Mux, m.state.core, m.path, stateOf)
		m.caps = m.nested.caps
	case *Mux:
		m.foreign = s
		m.caps = s.Capabilities()
	default:
		m.leaf = s
		m.caps = s.Capabilities()
		if !cfg.Composed {
			m.retry = newRetrier(n.cfg.Retry)
		}
	}
	return m
}

func identity(cfg *Member, path string) string {
	if cfg.ID != "" {
		return cfg.ID
	}
	return path
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "/" + name
}

// renew returns n with its members' health as it is now.
func (n *node) renew() *node {
	fresh := *n
	fresh.members = make([]*member, len(n.members))
	for i, m := range n.members {
		if m.nested != nil {
			clone := *m
			clone.nested = m.nested.renew()
			m = &clone
		}
		fresh.members[i] = m
	}
	fresh.survey()
	return &fresh
}

// survey notes which members may be chosen, and when to look again.
func (n *node) survey() {
	var reads, writes []uint8
	n.due, n.spaceDue = never, never
	for _, m := range n.members {
		due, spaceDue := m.dueAt()
		n.due, n.spaceDue = min(n.due, due), min(n.spaceDue, spaceDue)
		if m.drain.Phase == DrainGranted || n.mode.takes != nil && !n.mode.takes(m) {
			continue
		}
		if m.up() {
			reads = append(reads, m.index)
		}
		if m.upForWrites() {
			writes = append(writes, m.index)
		}
	}
	n.reads = newSet(n.mode, n.members, reads)
	n.writes = newSet(n.mode, n.members, writes)
}

// up reports whether the member, or any leaf below it, is up.
func (m *member) up() bool {
	if below := m.below(); below != nil {
		return len(below.reads.index) > 0
	}
	return !m.state.health.down.Load()
}

func (m *member) upForWrites() bool {
	if m.drain.Phase != DrainNone {
		return false
	}
	if below := m.below(); below != nil {
		return below.writable()
	}
	return !m.state.health.down.Load() && !m.state.space.down.Load()
}

// writable reports whether a write has a chance.
func (n *node) writable() bool {
	if n.mode.originDecides {
		return len(n.writes.index) > 0 && n.writes.index[0] == 0
	}
	return len(n.writes.index) > 0
}

// dueAt returns when the member, or the first leaf below it, may be probed.
func (m *member) dueAt() (due, spaceDue int64) {
	if m.drain.Phase == DrainGranted {
		return never, never
	}
	if below := m.below(); below != nil {
		return below.due, below.spaceDue
	}
	due, spaceDue = never, never
	if m.state.health.down.Load() {
		due = m.state.health.until.Load()
	}
	if m.state.space.down.Load() {
		spaceDue = m.state.space.until.Load()
	}
	return due, spaceDue
}

// probeable reports whether a request of op that came to the member now could
// find out whether it is up again.
func (m *member) probeable(op operation, now int64) bool {
	if below := m.below(); below != nil {
		for _, inner := range below.members {
			if inner.state.open(op) && inner.probeable(op, now) {
				return true
			}
		}
		return false
	}
	st := m.state
	if st.health.down.Load() {
		return st.health.due(now) && (!op.needsSpace() || !st.space.down.Load() || st.space.due(now))
	}
	return op.needsSpace() && st.space.due(now)
}

// spread reports whether a key may be on any one of several members.
func (n *node) spread() bool {
	return n.cfg.Keyspace == KeyspaceSpread && len(n.members) > 1
}

// granted reports whether the member has left the choice for good.
func (m *member) granted() bool {
	return DrainPhase(m.state.phase.Load()) == DrainGranted
}

// walkMembers calls f for every member of the tree that the engine built.
func (n *node) walkMembers(f func(*member)) {
	for _, m := range n.members {
		f(m)
		if m.nested != nil {
			m.nested.walkMembers(f)
		}
	}
}

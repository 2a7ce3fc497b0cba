package proxy

import (
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
)

// topology makes the engine's configuration of a valid document and the stores
// of its backends, by name. It reports false if the root has fewer members
// than its mode needs, as after a forced removal: then there is nothing to run.
func topology(doc *muxconfig.Document, stores map[string]storage.Storage) (muxengine.Config, bool) {
	t := topologist{doc: doc, stores: stores}
	root := doc.Mux(doc.Root)
	if !works(root) {
		return muxengine.Config{}, false
	}
	return t.mux(root, ""), true
}

// works reports whether m has the members that its mode needs.
func works(m *muxconfig.Mux) bool { return len(m.Members) >= muxconfig.MinMembers(m.Mode) }

type topologist struct {
	doc    *muxconfig.Document
	stores map[string]storage.Storage
}

func (t *topologist) mux(m *muxconfig.Mux, path string) muxengine.Config {
	config := muxengine.Config{
		Name:           m.Name,
		Mode:           muxengine.Mode(m.Mode),
		Keyspace:       muxengine.Keyspace(m.Keyspace),
		BackendTimeout: m.BackendTimeout.Std(),
		Retry: muxengine.Retry{
			MaxAttempts:     int(m.Retry.MaxAttempts),
			InitialInterval: m.Retry.InitialInterval.Std(),
			MaxInterval:     m.Retry.MaxInterval.Std(),
		},
		Health: muxengine.Health{
			Cooldown:    m.Health.Cooldown.Std(),
			MaxCooldown: m.Health.MaxCooldown.Std(),
			WhenAllDown: muxengine.WhenAllDown(m.Health.WhenAllDown),
		},
		OnFanoutPartial: muxengine.OnFanoutPartial(m.OnFanoutPartial),
		StickyHash:      muxengine.StickyHash(m.StickyHash),
		Members:         make([]muxengine.Member, 0, len(m.Members)),
	}
	for i := range m.Members {
		config.Members = append(config.Members, t.member(&m.Members[i], path))
	}
	return config
}

func (t *topologist) member(m *muxconfig.Member, parent string) muxengine.Member {
	path := muxconfig.JoinPath(parent, m.Name)
	member := muxengine.Member{Name: m.Name, Drain: drain(m.Drain)}
	if m.Weight != nil {
		weight := int(*m.Weight)
		member.Weight = &weight
	}
	if m.Mux != "" {
		nested := t.doc.Mux(m.Mux)
		member.ID = memberID(path, nested.UID)
		if works(nested) {
			config := t.mux(nested, path)
			member.Mux = &config
		} else {
			member.Storage = nothing{}
		}
		return member
	}
	b := t.doc.Backend(m.Backend)
	member.ID = memberID(path, b.UID)
	member.Storage = t.stores[b.Name]
	member.Timeout = b.Timeout.Std()
	member.MaxInFlight = int(b.MaxInFlight)
	member.MayBlock = b.File != nil
	if check := b.HealthCheck; check != nil {
		member.HealthCheck = muxengine.HealthCheck{Interval: check.Interval.Std(), Timeout: check.Timeout.Std()}
	}
	return member
}

// memberID is the identity of a member's runtime state: the same resource at
// the same place. The uid alone may occur at several places of a tree.
func memberID(path, uid string) string { return path + "#" + uid }

func drain(d *muxconfig.Drain) muxengine.Drain {
	switch {
	case d == nil:
		return muxengine.Drain{}
	case d.Phase == muxconfig.DrainReadOnly:
		return muxengine.Drain{Phase: muxengine.DrainWritesRefused}
	default:
		return muxengine.Drain{Phase: muxengine.DrainGranted, Deadline: *d.Deadline}
	}
}

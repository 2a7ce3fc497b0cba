package proxy

import (
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
)

// topology makes the engine's configuration of a valid document. It reports false if the root has fewer members
// than its mode needs, as after a forced removal: then there is nothing to run.
func (t *topologist) topology() (config muxengine.Config, works bool, err error) {
	root := t.doc.Mux(t.doc.Root)
	if !hasEnough(root) {
		return muxengine.Config{}, false, nil
	}
	config, err = t.mux(root, "")
	return config, true, err
}

// hasEnough reports whether m has the members that its mode needs.
func hasEnough(m *muxconfig.Mux) bool { return len(m.Members) >= muxconfig.MinMembers(m.Mode) }

type topologist struct {
	doc *muxconfig.Document
	// stores are those of the backends that are no ladders, by name.
	stores map[string]storage.Storage
	ladder func(*muxconfig.Backend) (*ladder, error)
}

func (t *topologist) mux(m *muxconfig.Mux, path string) (muxengine.Config, error) {
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
		member, err := t.member(&m.Members[i], path)
		if err != nil {
			return muxengine.Config{}, err
		}
		config.Members = append(config.Members, member)
	}
	return config, nil
}

func (t *topologist) member(m *muxconfig.Member, parent string) (muxengine.Member, error) {
	path := muxconfig.JoinPath(parent, m.Name)
	member := muxengine.Member{Name: m.Name, Drain: drain(m.Drain)}
	if m.Weight != nil {
		weight := int(*m.Weight)
		member.Weight = &weight
	}
	if m.Mux != "" {
		nested := t.doc.Mux(m.Mux)
		member.ID = memberID(path, nested.UID)
		if !hasEnough(nested) {
			member.Storage = nothing{}
			return member, nil
		}
		config, err := t.mux(nested, path)
		member.Mux = &config
		return member, err
	}
	b := t.doc.Backend(m.Backend)
	member.ID = memberID(path, b.UID)
	if b.Fallback != nil {
		l, err := t.ladder(b)
		if err != nil {
			return muxengine.Member{}, err
		}
		member.Storage, member.Timeout, member.Composed = l.Storage, l.timeout, true
	} else {
		member.Storage, member.Timeout = t.stores[b.Name], b.Timeout.Std()
	}
	member.MaxInFlight = int(b.MaxInFlight)
	member.MayBlock = b.File != nil
	if check := b.HealthCheck; check != nil {
		member.HealthCheck = muxengine.HealthCheck{Interval: check.Interval.Std(), Timeout: check.Timeout.Std()}
	}
	return member, nil
}

// timeout is how long a call of a member may take when all that it may ask one
// after another take their time; otherwise is the limit of leaves without one.
func (t *topologist) timeout(m *muxconfig.Member, otherwise time.Duration) time.Duration {
	below := t.doc.Below(m)
	if below == nil {
		if limit := t.doc.Backend(m.Backend).Timeout.Std(); limit > 0 {
			return limit
		}
		return otherwise
	}
	total := ladderMargin
	for i := range below.Members {
		total += t.timeout(&below.Members[i], below.BackendTimeout.Std())
	}
	return total
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

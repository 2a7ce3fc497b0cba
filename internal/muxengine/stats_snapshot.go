package muxengine

import "time"

// Stats returns the figures of this moment. It takes no lock that events are
// sent under.
func (m *Mux) Stats() Stats {
	n := m.node.Load()
	s := n.stats()
	present := index(n)
	for _, st := range m.allStates() {
		if b := st.member.Load(); b != nil && present[st] == nil {
			s.Leaving = append(s.Leaving, b.stats())
		}
	}
	return s
}

func (n *node) stats() Stats {
	s := Stats{
		Name: n.cfg.Name, Mode: n.cfg.Mode, Keyspace: n.cfg.Keyspace, Capabilities: n.caps,
		TotalCalls: n.core.calls.Load(), TotalFailovers: n.core.failovers.Load(),
		TotalFanoutPartials: n.core.partials.Load(),
		TotalResumes:        n.core.resumes.Load(), TotalBroken: n.core.broken.Load(),
	}
	for _, b := range n.members {
		s.Members = append(s.Members, b.stats())
	}
	return s
}

func (b *member) stats() MemberStats {
	st := b.state
	s := MemberStats{
		Name: b.name, Path: b.path, ID: identity(b.cfg, b.path), State: StateUp,
		Hits: st.hits.Load(), Misses: st.misses.Load(), Errors: st.errors.Load(),
		Timeouts: st.timeouts.Load(), Aborts: st.aborts.Load(),
		LastLatency:         time.Duration(st.last.Load()),
		ConsecutiveFailures: int(max(st.health.failures.Load(), st.space.failures.Load())),
		InFlight:            int(st.inFlight.Load()),
		LastError:           st.lastError.Load(),
	}
	p := st.latencies.percentiles(0.5, 0.99)
	s.P50Latency, s.P99Latency = p[0], p[1]
	if at := st.transition.Load(); at != 0 {
		s.LastTransition = st.mux.base.Add(time.Duration(at))
	}
	if d := st.drained.Load(); d != nil {
		s.Drain = *d
	}
	below := b.below()
	if below != nil {
		nested := below.stats()
		s.Nested = &nested
		for _, inner := range nested.Members {
			if inner.LastTransition.After(s.LastTransition) {
				s.LastTransition = inner.LastTransition
			}
		}
	}
	switch {
	case s.Drain.Phase != DrainNone:
		s.State = StateDraining
	case !b.up():
		s.State = StateDown
	case below == nil:
		s.WritesDown = st.space.down.Load()
	default:
		s.WritesDown = !below.writable()
	}
	return s
}

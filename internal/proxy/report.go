package proxy

import (
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
)

// facts are what a report is made of, as of one moment.
type facts struct {
	served    *served // nil before the first document
	stats     muxengine.Stats
	retired   *muxconfig.Totals
	rejection *muxconfig.Rejection
	stores    map[drainKey]drainSeen
	now       time.Time
}

// report puts the facts into the form of the wire, without what the hub adds.
func (f facts) report() *muxconfig.Report {
	r := &muxconfig.Report{
		MinSchema: muxconfig.MinSchemaVersion, MaxSchema: muxconfig.SchemaVersion,
		Time: f.now, Rejection: f.rejection,
		Totals:  totals(f.stats, f.retired),
		Members: []muxconfig.MemberReport{},
	}
	if f.served == nil {
		return r
	}
	doc := f.served.doc
	r.Applied = &muxconfig.Applied{Revision: doc.Revision, Transitions: doc.Transitions, Hash: doc.Hash}
	figures := f.figures()
	for i := range f.served.members {
		p := &f.served.members[i]
		if stats, ok := figures[p.id()]; ok {
			r.Members = append(r.Members, f.member(p, stats))
		}
	}
	return r
}

// eachMember calls visit for every member that the configuration has.
func eachMember(s muxengine.Stats, visit func(muxengine.MemberStats)) {
	for _, m := range s.Members {
		visit(m)
		if m.Nested != nil {
			eachMember(*m.Nested, visit)
		}
	}
}

// figures are those of every member, by its id.
func (f facts) figures() map[string]muxengine.MemberStats {
	figures := map[string]muxengine.MemberStats{}
	f.eachMember(func(m muxengine.MemberStats) { figures[m.ID] = m })
	return figures
}

// eachMember calls visit for every member, also for the candidates of fallback
// backends and what is in them.
func (f facts) eachMember(visit func(muxengine.MemberStats)) {
	eachMember(f.stats, visit)
	if f.served == nil {
		return
	}
	for i := range f.served.members {
		p := &f.served.members[i]
		if p.backend == nil || p.backend.Fallback == nil || f.served.ladders[p.backend.UID] == nil {
			continue
		}
		for _, holder := range f.served.ladders[p.backend.UID].holders {
			eachMember(holder.Stats(), func(m muxengine.MemberStats) {
				m.ID, m.Path = muxconfig.JoinPath(p.path, m.ID), muxconfig.JoinPath(p.path, m.Path)
				visit(m)
			})
		}
	}
}

func (f facts) member(p *place, s muxengine.MemberStats) muxconfig.MemberReport {
	m := muxconfig.MemberReport{
		Path: p.path, Backend: p.member.Backend, Mux: p.member.Mux, UID: p.uid(),
		State:               muxconfig.MemberState(s.State),
		Figures:             wireFigures(s),
		ConsecutiveFailures: int32(min(s.ConsecutiveFailures, 1<<30)),
		LastTransitionTime:  s.LastTransition,
		Drain:               f.drain(p, s),
	}
	if s.LastError != nil {
		m.LastError = &muxconfig.MemberError{Code: string(s.LastError.Code), Message: s.LastError.Message}
	}
	switch {
	case p.backend != nil && p.backend.Fallback != nil:
		m.Capabilities = wireCapabilities(f.served.ladders[p.backend.UID].Capabilities())
	case p.backend != nil:
		client := f.served.stores[p.backend.UID]
		m.Capabilities, m.Refused = wireCapabilities(client.Capabilities()), client.refused
	case s.Nested != nil:
		nested := totals(*s.Nested, nil)
		m.Totals = &nested
		m.Capabilities = wireCapabilities(s.Nested.Capabilities)
	}
	return m
}

func (f facts) drain(p *place, s muxengine.MemberStats) *muxconfig.DrainReport {
	if p.member.Drain == nil {
		return nil
	}
	drain := p.member.Drain
	d := &muxconfig.DrainReport{Phase: drain.Phase, InFlight: f.running(p, s)}
	seen, known := f.stores[keyOf(p)]
	d.OpenUploads = max(0, seen.uploads)
	overdue := drain.Deadline != nil && !f.now.Before(*drain.Deadline)
	d.Done = f.quiet(p, s) && (overdue || known && seen.uploads == 0)
	if d.Done {
		d.StoreEmpty = seen.empty
	}
	return d
}

// quiet reports whether nothing runs on p any more that its drain waits for.
func (f facts) quiet(p *place, s muxengine.MemberStats) bool {
	return f.running(p, s) == 0 && (p.readOnly() || s.Drain.Completed)
}

// running counts the requests that the drain of p waits for.
func (f facts) running(p *place, s muxengine.MemberStats) int64 {
	if p.readOnly() {
		return f.served.generations.writesBefore(p.readOnlySince)
	}
	return int64(s.InFlight)
}

func wireFigures(s muxengine.MemberStats) muxconfig.Figures {
	return muxconfig.Figures{
		Hits: int64(s.Hits), Misses: int64(s.Misses), Errors: int64(s.Errors),
		Timeouts: int64(s.Timeouts), Aborts: int64(s.Aborts), InFlight: int64(s.InFlight),
		LastLatency: s.LastLatency.Microseconds(), P50Latency: s.P50Latency.Microseconds(), P99Latency: s.P99Latency.Microseconds(),
	}
}

// totals adds what engines counted that were given up.
func totals(s muxengine.Stats, retired *muxconfig.Totals) muxconfig.Totals {
	sum := muxconfig.Totals{
		Calls: int64(s.TotalCalls), Failovers: int64(s.TotalFailovers), FanoutPartials: int64(s.TotalFanoutPartials),
	}
	if retired != nil {
		sum.Calls += retired.Calls
		sum.Failovers += retired.Failovers
		sum.FanoutPartials += retired.FanoutPartials
	}
	return sum
}

func wireCapabilities(c storage.Capabilities) []string {
	var names []string
	for _, one := range []struct {
		name string
		has  bool
	}{
		{muxconfig.CapabilityRange, c.Range},
		{muxconfig.CapabilityPartialWrite, c.PartialWrite},
		{muxconfig.CapabilityMetadata, c.Metadata},
		{muxconfig.CapabilityConditionalWrite, c.ConditionalWrite},
		{muxconfig.CapabilityNativeMultipart, c.Multipart},
		{muxconfig.CapabilityOrderedList, c.ListOrdered},
		{muxconfig.CapabilityTagging, c.Tagging},
		{muxconfig.CapabilityIdentityNative, c.Identity == storage.IdentityNative},
		{muxconfig.CapabilityIdentityStored, c.Identity == storage.IdentityStored},
		{muxconfig.CapabilityIdentityWeak, c.Identity == storage.IdentityWeak},
	} {
		if one.has {
			names = append(names, one.name)
		}
	}
	return names
}

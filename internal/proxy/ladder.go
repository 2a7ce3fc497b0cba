package proxy

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/suaveplan/storagemux/internal/fallbackuri"
	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
)

// ladder is a fallback backend. Each candidate is held by an engine of its own,
// so that it has a time limit, a limit of requests, figures and a drain as the
// members of a mux have, and keeps them while the document changes.
type ladder struct {
	storage.Storage
	// timeout is how long a call may take when every candidate takes all its
	// time.
	timeout time.Duration
	// takesParts: uploads in parts are not refused.
	takesParts bool
	holders    map[string]*muxengine.Mux
	made       [sha256.Size]byte
}

// ladders are those of a document, by the uid of their backend.
type ladders map[string]*ladder

// ladderMargin is what a ladder may take beyond the time of its candidates.
const ladderMargin = time.Second

// ladderMaker makes the ladders of one document.
type ladderMaker struct {
	topologist *topologist
	old, made  ladders
	engine     muxengine.Options
	meter      metric.Meter
	events     func(path string, e fallbackuri.Event)
	// fresh are the holders that did not exist before.
	fresh []*muxengine.Mux
}

// openLadders makes the ladders of doc and adds them to the stores of t. Holders
// of old are used on where the candidate is the same. On error none is left open
// that was not there before.
func (a *applier) openLadders(doc *muxconfig.Document, t *topologist, old ladders) (ladders, error) {
	m := ladderMaker{topologist: t, old: old, made: ladders{}, engine: a.engine, meter: a.metrics.candidates, events: a.fallbackEvent}
	m.engine.PassVersions = true
	paths := map[string]string{}
	_ = muxconfig.Walk(doc, func(path string, _ *muxconfig.Mux, member *muxconfig.Member) {
		if b := doc.Backend(member.Backend); b != nil && b.Fallback != nil && paths[b.Name] == "" {
			paths[b.Name] = path
		}
	})
	// Candidates lie deeper than the ladders that they are in: the document
	// holds no cycle.
	t.ladder = func(b *muxconfig.Backend) (*ladder, error) { return m.ladder(b, paths[b.Name]) }
	for i := range doc.Backends {
		b := &doc.Backends[i]
		if b.Fallback == nil || paths[b.Name] == "" {
			continue
		}
		if _, err := t.ladder(b); err != nil {
			for _, one := range m.fresh {
				one.Close()
			}
			return nil, fmt.Errorf("open backend %s: %w", b.Name, err)
		}
	}
	return m.made, nil
}

func (m *ladderMaker) ladder(b *muxconfig.Backend, path string) (*ladder, error) {
	if done := m.made[b.UID]; done != nil {
		return done, nil
	}
	l := &ladder{holders: map[string]*muxengine.Mux{}}
	before := m.old[b.UID]
	mux := m.topologist.doc.Mux(muxconfig.LadderName(b.Name))
	timeouts := map[string]time.Duration{}
	for i := range mux.Members {
		member := &mux.Members[i]
		holder, err := m.hold(b, mux, member, path, before)
		if err != nil {
			return nil, err
		}
		l.holders[member.Name] = holder
		if member.Drain == nil || member.Drain.Phase != muxconfig.DrainGranted {
			timeouts[member.Name] = m.topologist.timeout(member, mux.BackendTimeout.Std())
			l.timeout += timeouts[member.Name]
		}
	}
	l.timeout += ladderMargin
	p, err := m.plan(b, mux, timeouts)
	if err != nil {
		return nil, err
	}
	l.takesParts = p.Refuses == ""
	if l.made, err = digest(b.Fallback, timeouts, p); err != nil {
		return nil, err
	}
	if before != nil && before.made == l.made && sameHolders(before.holders, l.holders) {
		l.Storage = before.Storage
	} else if l.Storage, err = m.compose(b, mux, l.holders, timeouts, p, path); err != nil {
		return nil, err
	}
	m.made[b.UID] = l
	return l, nil
}

// hold returns the engine of one candidate.
func (m *ladderMaker) hold(b *muxconfig.Backend, mux *muxconfig.Mux, member *muxconfig.Member, path string, before *ladder) (*muxengine.Mux, error) {
	held, err := m.topologist.member(member, "")
	if err != nil {
		return nil, err
	}
	config := muxengine.Config{
		Name: b.Name, Mode: muxengine.ModeFailover, BackendTimeout: mux.BackendTimeout.Std(),
		Health: muxengine.Health{Stateless: true}, Members: []muxengine.Member{held},
	}
	if before != nil && before.holders[member.Name] != nil {
		holder := before.holders[member.Name]
		return holder, holder.Apply(config)
	}
	opts := m.engine
	if tell := opts.Events; tell != nil {
		opts.Events = func(e muxengine.Event) {
			if e.Path = path; e.Topic != muxengine.TopicBackendAdded && e.Topic != muxengine.TopicBackendRemoved {
				tell(e)
			}
		}
	}
	holder, err := muxengine.New(config, opts)
	if err == nil {
		m.fresh = append(m.fresh, holder)
	}
	return holder, err
}

// plan is what a ladder is made of.
type plan struct {
	// Whole is the fallback URI of the candidates that may be chosen, and Parts
	// that of those that parts of uploads are kept on. Empty: there are none.
	Whole, Parts string
	// Refuses says why uploads in parts are not taken.
	Refuses string
}

func (m *ladderMaker) plan(b *muxconfig.Backend, mux *muxconfig.Mux, timeouts map[string]time.Duration) (plan, error) {
	f := b.Fallback
	chosen, writable := map[string]bool{}, map[string]bool{}
	for _, c := range f.Candidates {
		if _, chosen[c.URI] = timeouts[c.Member]; chosen[c.URI] {
			writable[c.URI] = m.writable(mux.Member(c.Member))
		}
	}
	full, err := fallbackuri.ParseFallbackURI(f.URI, int(f.MaxCandidates))
	if err != nil {
		return plan{}, err
	}
	leaves, err := full.Leaves(int(f.MaxCandidates), int(f.MaxDepth))
	if err != nil {
		return plan{}, err
	}
	leaves = slices.DeleteFunc(leaves, func(text string) bool { return !chosen[text] })
	only := func(keep func(string) bool) string {
		rest, left := prune(full.Candidates(), int(f.MaxCandidates), int(f.MaxDepth), keep)
		if !left {
			return ""
		}
		return rest
	}
	p := plan{Whole: only(func(text string) bool { return chosen[text] })}
	if p.Refuses = refusesParts(f, leaves, func(text string) bool { return writable[text] }); p.Refuses == "" {
		p.Parts = only(func(text string) bool { return writable[text] })
	}
	return p, nil
}

// compose makes the store of the candidates that may be chosen.
func (m *ladderMaker) compose(b *muxconfig.Backend, mux *muxconfig.Mux, holders map[string]*muxengine.Mux, timeouts map[string]time.Duration, p plan, path string) (storage.Storage, error) {
	if p.Whole == "" {
		return nothing{}, nil
	}
	targets := map[string]fallbackuri.Target{}
	for _, c := range b.Fallback.Candidates {
		limit, chosen := timeouts[c.Member]
		if !chosen {
			continue
		}
		target := fallbackuri.Target{Storage: holders[c.Member], Timeout: limit}
		if at, err := uri.Locate(c.URI); err == nil && !muxconfig.IsCandidate(mux.Member(c.Member).Backend) {
			target.Key = at.Key
		}
		targets[c.URI] = target
	}
	f := b.Fallback
	opts := fallbackuri.Options{
		Name: b.Name, Tracer: m.engine.Tracer, Meter: m.meter, Spool: m.engine.Spool,
		Resolver: fallbackuri.ResolverFunc(func(text string) (fallbackuri.Target, error) { return targets[text], nil }),
		Events:   func(e fallbackuri.Event) { m.events(path, e) },
		Policy: fallbackuri.Policy{
			Walk: fallbackuri.Walk(f.Walk), ErrorClass: fallbackuri.ErrorClass(f.ErrorClass),
			NotFoundIsFinal: f.NotFoundIsFinal, PassAborts: f.PassAborts,
			WriteMode: fallbackuri.WriteMode(f.WriteMode), DeleteMode: fallbackuri.DeleteMode(f.DeleteMode),
			ListFailureMode: fallbackuri.ListFailureMode(f.ListFailureMode), MaxCandidates: int(f.MaxCandidates), MaxDepth: int(f.MaxDepth),
		},
	}
	whole, err := fallbackuri.NewStorage(p.Whole, opts)
	switch {
	case err != nil:
		return nil, err
	case p.Parts == "":
		return newPartsLadder(whole, nil, p.Refuses), nil
	}
	// A part may lie on any of the candidates, and none may be missed.
	opts.Policy.Walk, opts.Policy.NotFoundIsFinal, opts.Policy.ListFailureMode = fallbackuri.WalkSequential, false, fallbackuri.ListThrow
	parts, err := fallbackuri.NewStorage(p.Parts, opts)
	if err != nil {
		whole.Close()
		return nil, err
	}
	return newPartsLadder(whole, parts, ""), nil
}

// prune returns the URI of the candidates that keep wants, without the fallback
// URIs that are empty then, and reports whether any is left.
func prune(candidates []string, most, depth int, keep func(string) bool) (string, bool) {
	var kept []string
	for _, text := range candidates {
		if !uri.IsFallback(text) {
			if keep(text) {
				kept = append(kept, text)
			}
			continue
		}
		nested, err := uri.Parse(text, most)
		if err != nil || depth <= 1 {
			continue
		}
		if below, left := prune(nested.Candidates(), most, depth-1, keep); left {
			kept = append(kept, below)
		}
	}
	u, err := uri.Build(kept, most)
	return u.String(), err == nil
}

func digest(parts ...any) (sum [sha256.Size]byte, err error) {
	data, err := json.Marshal(parts)
	return sha256.Sum256(data), err
}

func sameHolders(a, b map[string]*muxengine.Mux) bool {
	for name, holder := range b {
		if a[name] != holder {
			return false
		}
	}
	return true
}

// retired returns the holders of l that next does not use.
func (l ladders) retired(next ladders) []*muxengine.Mux {
	used := map[*muxengine.Mux]bool{}
	for _, one := range next {
		for _, holder := range one.holders {
			used[holder] = true
		}
	}
	var gone []*muxengine.Mux
	for _, one := range l {
		for _, holder := range one.holders {
			if !used[holder] && !slices.Contains(gone, holder) {
				gone = append(gone, holder)
			}
		}
	}
	return gone
}

func closeHolders(list []*muxengine.Mux) {
	for _, one := range list {
		one.Close()
	}
}

// fallbackEvent takes what happens in a ladder.
func (a *applier) fallbackEvent(path string, e fallbackuri.Event) {
	wire := muxconfig.Event{Time: e.Time, Topic: string(e.Topic), Path: path}
	switch e.Topic {
	case fallbackuri.TopicCycleDetected:
		wire.Code = string(storage.CodeFallbackCircularReference)
		wire.Message = fmt.Sprintf("%s passed over %s, which leads back to it", path, e.Candidate)
	case fallbackuri.TopicFellThrough:
		if storage.CodeOf(e.Err) == storage.CodeKeyNotFound {
			return // a key that lies further on is what a ladder is for
		}
		wire.Code = string(storage.CodeOf(e.Err))
		wire.Message = fmt.Sprintf("a request went on from %s of %s: %s", e.Candidate, path, orCode("", e.Err))
	default:
		wire.Message = fmt.Sprintf("%s did not reach %d candidate(s) of %s", e.Op, len(e.Failed), path)
		if len(e.Failed) > 0 {
			wire.Code = string(storage.CodeOf(e.Failed[0].Err))
		}
	}
	if a.hub.requestEvent(wire) {
		a.log.Warn(wire.Message, "topic", wire.Topic, "path", wire.Path, "code", wire.Code)
	}
}

package proxy

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
)

// Pace of the listings that tell whether a store is empty.
const (
	listInterval = 10 * time.Second
	listTimeout  = 10 * time.Second
)

// drainKey is one phase of one member's drain.
type drainKey struct {
	id    string
	phase muxconfig.DrainPhase
}

func keyOf(p *place) drainKey { return drainKey{p.id(), p.member.Drain.Phase} }

// drainWatch follows the members that are on their way out: it tells the hub
// when one is done, and, in keyspace spread, whether the store of one that is
// done holds anything.
type drainWatch struct {
	log   *slog.Logger
	hub   *hub
	facts func() facts

	kicked  chan struct{}
	listing sync.WaitGroup

	mu      sync.Mutex
	members map[drainKey]*drainState
}

// drainState is what is known of one member that drains.
type drainState struct {
	done bool
	// listed is when the last listing of its store began, and busy that it
	// has not ended.
	listed time.Time
	busy   bool
	// empty is nil while it is not known.
	empty *bool
}

func newDrainWatch(log *slog.Logger, h *hub, facts func() facts) *drainWatch {
	return &drainWatch{
		log: log, hub: h, facts: facts, kicked: make(chan struct{}, 1), members: map[drainKey]*drainState{},
	}
}

// kick asks for a look soon. It never blocks.
func (w *drainWatch) kick() {
	select {
	case w.kicked <- struct{}{}:
	default:
	}
}

// emptiness says which stores were found to be empty, or not.
func (w *drainWatch) emptiness() map[drainKey]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := map[drainKey]bool{}
	for key, state := range w.members {
		if state.empty != nil {
			known[key] = *state.empty
		}
	}
	return known
}

// run watches until ctx ends and the listings with it.
func (w *drainWatch) run(ctx context.Context) {
	defer w.listing.Wait()
	timer := time.NewTimer(listInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.kicked:
		case <-timer.C:
		}
		w.look(ctx)
		timer.Reset(listInterval)
	}
}

// look goes through the members that drain.
func (w *drainWatch) look(ctx context.Context) {
	f := w.facts()
	if f.served == nil {
		return
	}
	figures := map[string]muxengine.MemberStats{}
	eachMember(f.stats, func(m muxengine.MemberStats) { figures[m.ID] = m })
	draining := map[drainKey]bool{}
	for i := range f.served.members {
		p := &f.served.members[i]
		stats, ok := figures[p.id()]
		if p.member.Drain == nil || !ok {
			continue
		}
		key := keyOf(p)
		draining[key] = true
		if w.due(key, f.drain(p, stats).Done, p.spread) {
			stores := storesUnder(f.served, p)
			w.listing.Go(func() { w.listed(key, w.list(ctx, p.path, stores)) })
		}
	}
	w.forget(draining)
}

// due notes whether the member is done and reports whether its store is to be
// listed now. What a listing found before the last write ended is worth
// nothing, so that one begins only after it.
func (w *drainWatch) due(key drainKey, done, spread bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.members[key]
	if state == nil {
		state = &drainState{}
		w.members[key] = state
	}
	if state.done != done {
		state.done = done
		w.hub.changed()
	}
	if !done || !spread || state.busy || time.Since(state.listed) < listInterval {
		return false
	}
	state.busy, state.listed = true, time.Now()
	return true
}

func (w *drainWatch) listed(key drainKey, empty *bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.members[key]
	if state == nil {
		return // the drain is over
	}
	before := state.empty
	state.busy, state.empty = false, empty
	if (before == nil) != (empty == nil) || empty != nil && *before != *empty {
		w.hub.changed()
	}
}

// forget drops what is known of members that drain no more.
func (w *drainWatch) forget(draining map[drainKey]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.members {
		if !draining[key] {
			delete(w.members, key)
		}
	}
}

// list reports whether none of the stores holds an object, nil if one of them
// does not say.
func (w *drainWatch) list(ctx context.Context, path string, stores []storage.Storage) *bool {
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, storage.CauseTimeout)
	defer cancel()
	for _, one := range stores {
		page, err := one.List(ctx, storage.ListOptions{Limit: 1})
		switch {
		case err != nil:
			w.log.Warn("cannot tell whether a draining store is empty", "path", path, "code", storage.CodeOf(err))
			return nil
		case len(page.Objects) > 0:
			return new(false)
		}
	}
	return new(true)
}

// storesUnder returns the stores of all leaves at and below p.
func storesUnder(s *served, p *place) []storage.Storage {
	var list []storage.Storage
	for i := range s.members {
		leaf := &s.members[i]
		if leaf.backend != nil && (leaf.path == p.path || strings.HasPrefix(leaf.path, p.path+"/")) {
			list = append(list, s.stores[leaf.backend.UID].Storage)
		}
	}
	return list
}

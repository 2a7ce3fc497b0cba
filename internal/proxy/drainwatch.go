package proxy

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/storage"
)

// Pace of the listings that tell whether a store is empty, or has uploads that
// are still open.
const (
	listInterval   = 10 * time.Second
	uploadInterval = 2 * time.Second
	listTimeout    = 10 * time.Second
)

const (
	// uploadAge is how old an upload may be that a drain without a deadline
	// waits for; one with a deadline waits for those as old as it is long.
	uploadAge = 10 * time.Minute
	// maxUploadPages bounds a count of uploads: it need not be exact above.
	maxUploadPages = 10
)

// drainKey is one phase of one member's drain.
type drainKey struct {
	id    string
	phase muxconfig.DrainPhase
}

func keyOf(p *place) drainKey { return drainKey{p.id(), p.member.Drain.Phase} }

// drainWatch follows the members that are on their way out: once nothing runs on
// one it counts the uploads in parts that are still open there, tells the hub
// when those are gone too, and finds out, in keyspace spread, whether the store
// holds anything then.
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
	drainSeen
	done bool
	// listed is when the last listing of its store began, and busy that it
	// has not ended.
	listed time.Time
	busy   bool
}

// drainSeen is what listings of the store have shown.
type drainSeen struct {
	// uploads are those that the drain waits for, -1 while that is not known.
	// Once there are none there will be none: nothing begins one any more.
	uploads int64
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

// seen says what is known of the stores.
func (w *drainWatch) seen() map[drainKey]drainSeen {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := map[drainKey]drainSeen{}
	for key, state := range w.members {
		known[key] = state.drainSeen
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
	figures := f.figures()
	draining := map[drainKey]bool{}
	for i := range f.served.members {
		p := &f.served.members[i]
		stats, ok := figures[p.id()]
		if p.member.Drain == nil || !ok {
			continue
		}
		key := keyOf(p)
		draining[key] = true
		switch w.due(key, f.quiet(p, stats), f.drain(p, stats).Done, p.spread) {
		case countUploads:
			stores, since := append(storesUnder(f.served, p), laddersUnder(f.served, p)...), uploadsSince(f.now, p.member.Drain, stats.Drain.StartedAt)
			w.listing.Go(func() { w.counted(key, w.openUploads(ctx, stores, since)) })
		case lookForObjects:
			stores := storesUnder(f.served, p)
			w.listing.Go(func() { w.listed(key, w.list(ctx, p.path, stores)) })
		}
	}
	w.forget(draining)
}

// task is what is to be found out of a member's store.
type task int

const (
	nothingNow task = iota
	countUploads
	lookForObjects
)

// due notes whether the member is done and returns what its store is to be asked
// now. What a listing found before the last write ended is worth nothing, so that
// one begins only after it.
func (w *drainWatch) due(key drainKey, quiet, done, spread bool) task {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.members[key]
	if state == nil {
		state = &drainState{drainSeen: drainSeen{uploads: -1}}
		w.members[key] = state
	}
	if state.done != done {
		state.done, state.listed = done, time.Time{}
		w.hub.changed()
	}
	since := time.Since(state.listed)
	var now task
	switch {
	case state.busy:
	case quiet && !done && since >= uploadInterval:
		now = countUploads
	case done && spread && since >= listInterval:
		now = lookForObjects
	}
	if now != nothingNow {
		state.busy, state.listed = true, time.Now()
	}
	return now
}

// listed and counted note what was found out, unless the drain is over.
func (w *drainWatch) listed(key drainKey, empty *bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.members[key]
	if state == nil {
		return
	}
	before := state.empty
	state.busy, state.empty = false, empty
	if (before == nil) != (empty == nil) || empty != nil && *before != *empty {
		w.hub.changed()
	}
}

func (w *drainWatch) counted(key drainKey, uploads int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.members[key]
	if state == nil {
		return
	}
	if state.uploads != uploads {
		w.hub.changed()
	}
	state.busy, state.uploads = false, uploads
	if uploads == 0 {
		w.kick()
	} else {
		time.AfterFunc(uploadInterval, w.kick)
	}
}

// uploadsSince returns from when on uploads count that the drain d, which began
// at startedAt, waits for. Older ones were left behind by somebody.
func uploadsSince(now time.Time, d *muxconfig.Drain, startedAt time.Time) time.Time {
	if d.Deadline == nil || startedAt.IsZero() {
		return now.Add(-uploadAge)
	}
	return now.Add(-d.Deadline.Sub(startedAt))
}

// openUploads counts the uploads of the stores that began since then. A store
// that does not say has none that anybody could go on with.
func (w *drainWatch) openUploads(ctx context.Context, stores []storage.Storage, since time.Time) int64 {
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, storage.CauseTimeout)
	defer cancel()
	var open int64
	for _, one := range stores {
		parts, ok := one.(storage.Multipart)
		if !ok {
			continue
		}
		opts := storage.ListUploadsOptions{Limit: storage.MaxListLimit}
		for range maxUploadPages {
			page, err := parts.ListUploads(ctx, opts)
			if err != nil {
				w.log.Warn("cannot tell which uploads are open on a draining store", "code", storage.CodeOf(err))
				break
			}
			for _, upload := range page.Uploads {
				if upload.Initiated.After(since) {
					open++
				}
			}
			if opts.AfterKey, opts.AfterID = page.NextKey, page.NextID; page.NextKey == "" {
				break
			}
		}
	}
	return open
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
		if leaf.backend != nil && leaf.backend.Fallback == nil && (leaf.path == p.path || strings.HasPrefix(leaf.path, p.path+"/")) {
			list = append(list, s.stores[leaf.backend.UID].Storage)
		}
	}
	return list
}

// laddersUnder returns the fallback backends at and below p that take uploads in
// parts, which their candidates know nothing of.
func laddersUnder(s *served, p *place) []storage.Storage {
	var list []storage.Storage
	for i := range s.members {
		leaf := &s.members[i]
		if leaf.backend == nil || leaf.backend.Fallback == nil || leaf.path != p.path && !strings.HasPrefix(leaf.path, p.path+"/") {
			continue
		}
		if l := s.ladders[leaf.backend.UID]; l != nil && l.takesParts {
			list = append(list, l.Storage)
		}
	}
	return list
}

package fallbackuri

import (
	"context"

	"github.com/suaveplan/storagemux/internal/storage"
)

// List implements storage.Storage: one page of the union of all candidates, in
// byte order and every key once. Pages go on after a key, so that they may be
// asked for one after another.
func (l *Ladder) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	r, page, err := l.list(ctx, opts)
	if err != nil {
		return storage.ListPage{}, err
	}
	return page, r.finish(nil)
}

// Listing is a list as the policy puts it together. There is no token to go on
// with, since candidates' own tokens cannot be merged.
type Listing struct {
	// Entries are, in ListUnion, every key once in byte order; in ListConcat
	// the candidates' lists one after another.
	Entries []storage.Info
	// Prefixes are common prefixes, in the same way.
	Prefixes []string
	// HasMore says that some candidate has more.
	HasMore bool
}

// ListAll returns the list of one page of each candidate.
func (l *Ladder) ListAll(ctx context.Context, opts storage.ListOptions) (Listing, error) {
	r, page, err := l.list(ctx, opts)
	if err != nil {
		return Listing{}, err
	}
	if l.policy.ListMode != ListConcat {
		return Listing{page.Objects, page.Prefixes, page.Next != ""}, r.finish(nil)
	}
	var all Listing
	for _, s := range r.settled() {
		all.Entries = append(all.Entries, s.page.Objects...)
		all.Prefixes = append(all.Prefixes, s.page.Prefixes...)
		all.HasMore = all.HasMore || s.page.Next != ""
	}
	return all, r.finish(nil)
}

func (l *Ladder) list(ctx context.Context, opts storage.ListOptions) (*record, storage.ListPage, error) {
	r, err := l.begin(ctx, "List", "", false)
	if err != nil {
		return nil, storage.ListPage{}, err
	}
	r.toAll = true
	page, err := l.lists.List(r.ctx, opts)
	if err = r.listed(err); err != nil {
		return nil, storage.ListPage{}, r.finish(err)
	}
	return r, page, nil
}

// listed is the outcome of a list.
func (r *record) listed(err error) error {
	if err != nil && r.ctx.Err() != nil {
		return r.ladder.aborted(r.op, context.Cause(r.ctx))
	}
	steps := r.settled()
	if chain := circle(steps); chain != nil {
		return r.ladder.circular(r.op, chain)
	}
	tried := r.tried(steps)
	listed := 0
	for _, s := range steps {
		if s.asked && s.err == nil {
			listed++
		}
	}
	switch {
	case len(tried) == 0:
		return err
	case listed == 0 && r.unanimous(tried):
		return tried[0].Err
	case listed == 0 || r.ladder.policy.ListFailureMode != ListPartial:
		return r.ladder.unionFailed(r.op, tried, listed == 0)
	}
	r.ladder.emit(Event{Topic: TopicListPartial, Op: r.op, Failed: tried})
	return nil
}

package fallbackuri

import (
	"context"
	"sync"

	"github.com/suaveplan/storagemux/internal/storage"
)

// record is what became of each candidate in one call. The engine judges a call
// by what it needs to go on; the outcome of the call is made of the record.
type record struct {
	ladder *Ladder
	ctx    context.Context
	frame  *frame
	op     string
	// writes: a not-found does not lead on. toAll: nothing leads on, since
	// every candidate is asked in any case.
	writes, toAll bool

	mu    sync.Mutex
	steps []step
}

// step is the latest that became of one candidate.
type step struct {
	asked   bool
	verdict verdict
	err     error
	cycle   []string
	page    storage.ListPage
}

type recordKey struct{}

func recordOf(ctx context.Context) *record {
	r, _ := ctx.Value(recordKey{}).(*record)
	return r
}

func (r *record) note(index int, s step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.asked = true
	r.steps[index] = s
}

// settled returns what is known so far. Those that lost a race may yet add to
// the record.
func (r *record) settled() []step {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]step(nil), r.steps...)
}

// tried returns the errors of the candidates that failed, in order.
func (r *record) tried(steps []step) []CandidateError {
	var list []CandidateError
	for i, s := range steps {
		if s.err != nil && s.cycle == nil {
			list = append(list, CandidateError{r.ladder.candidates[i].shown, s.err})
		}
	}
	return list
}

// circle returns the first cycle if every candidate was one.
func circle(steps []step) []string {
	for _, s := range steps {
		if s.cycle == nil {
			return nil
		}
	}
	return steps[0].cycle
}

// ended returns the verdict and error of the candidate that ended the walk.
func ended(steps []step) (verdict, error) {
	for _, s := range steps {
		if s.verdict == stop || s.verdict == abort {
			return s.verdict, s.err
		}
	}
	return done, nil
}

func (r *record) notePage(index int, page storage.ListPage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps[index].page = page
}

package storagetest

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Factory returns an empty store. The suite closes it if it is an io.Closer.
type Factory func(t *testing.T) storage.Storage

// Options say what of the suite fits a store.
type Options struct {
	// MaxBody is the size of the largest body written, 8 MiB if 0.
	MaxBody int64
	// ListKeys is the number of keys of the longest listing, 2,500 if 0.
	ListKeys int
	// NoKeyUnderKey is set for servers that cannot hold both "a" and "a/b".
	NoKeyUnderKey bool
	// OneTagOnly and NoStarOnRead are set for servers that compare If-Match
	// and If-None-Match of a read with one tag only, or do not know "*" there.
	OneTagOnly, NoStarOnRead bool
	// RacyConditions is set for servers that check the condition of a write
	// and write in two steps, so that two writers can both find it holds.
	RacyConditions bool
	// SlashDelimiterOnly is set for servers that fold at "/" only.
	SlashDelimiterOnly bool
	// Refused reports, of a key that satisfies storage.ValidateKey, that
	// the server behind the store cannot hold it. Such a key must be
	// refused with a semantic error. Nil means that there is none.
	Refused func(key string) bool
	// Debris lists what writes left behind in the store that is not an
	// object: temporary files, parts, uploads. Nil skips that question.
	Debris func(t *testing.T, s storage.Storage) []string
	// Results, if set, is told the outcome of each check by its name.
	Results func(check string, outcome Outcome)
}

// Outcome is what came of a check.
type Outcome string

// Outcomes of a check.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Refused Outcome = "refused" // the store says that it cannot, and refuses as it must
)

// check is one promise of the contract. needs, if set, is the capability that
// run needs; without it the check is refusal.
type check struct {
	name    string
	needs   func(storage.Capabilities) bool
	run     func(*suite)
	refusal func(*suite)
}

// suite is what one check works with.
type suite struct {
	*testing.T
	Options
	ctx   context.Context
	store storage.Storage
}

// Run checks the stores that open returns, one per check.
func Run(t *testing.T, open Factory, opts Options) {
	if opts.MaxBody == 0 {
		opts.MaxBody = 8 << 20
	}
	if opts.ListKeys == 0 {
		opts.ListKeys = 2500
	}
	for _, group := range [][]check{contentChecks, keyChecks, rangeChecks, partialChecks, conditionChecks, listChecks, failureChecks} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) { runCheck(t, c, open, opts) })
		}
	}
}

func runCheck(t *testing.T, c check, open Factory, opts Options) {
	outcome := Passed
	if opts.Results != nil {
		t.Cleanup(func() {
			if t.Failed() {
				outcome = Failed
			}
			opts.Results(c.name, outcome)
		})
	}
	failOnLeakedGoroutines(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	s := &suite{T: t, Options: opts, ctx: ctx, store: open(t)}
	if closer, ok := s.store.(io.Closer); ok {
		t.Cleanup(func() {
			if err := closer.Close(); err != nil {
				t.Errorf("closing the store: %v", err)
			}
		})
	}
	if c.needs == nil || c.needs(s.store.Capabilities()) {
		c.run(s)
		return
	}
	outcome = Refused
	if c.refusal != nil {
		c.refusal(s)
	}
}

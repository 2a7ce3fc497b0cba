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
	// FoldersStay is set for stores in which "a" cannot be a key once there
	// was "a/b", since the server's folder stays.
	FoldersStay bool
	// OverwritesHaveGaps is set for servers that remove an object before another
	// takes its place, between which readers find nothing.
	OverwritesHaveGaps bool
	// SlashDelimiterOnly is set for servers that fold at "/" only.
	SlashDelimiterOnly bool
	// Keys says what the server behind the store makes of a key that
	// satisfies storage.ValidateKey. Nil means that it holds all of them.
	Keys func(key string) KeyFate
	// Debris lists what writes left behind in the store that is not an
	// object: temporary files, parts, uploads. Nil skips that question.
	Debris func(t *testing.T, s storage.Storage) []string
	// RepeatsUploads is set for muxes of members that share a store, each of
	// which lists the same uploads.
	RepeatsUploads bool
	// Reopen returns another handle on the same store, as another process has
	// one. Nil skips what needs it.
	Reopen func(t *testing.T, s storage.Storage) storage.Storage
	// Results, if set, is told the outcome of each check by its name.
	Results func(check string, outcome Outcome)
}

// KeyFate is what a server makes of a key.
type KeyFate int

// Fates of keys. A refused key gives a semantic error. One that the server
// holds under another name, or does not list, cannot be told by a store and is not
// tried.
const (
	Held KeyFate = iota
	RefusedKey
	Mangled
)

// Outcome is what came of a check.
type Outcome string

// Outcomes of a check.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Refused Outcome = "refused" // the store says that it cannot, and refuses as it must
	Gapped  Outcome = "gapped"  // passed, but for the moments of Options.OverwritesHaveGaps
)

// check is one promise of the contract. needs, if set, is the capability that
// run needs; without it the check is refusal.
type check struct {
	name    string
	offers  func(storage.Storage) bool // an optional interface; without it there is nothing to check
	needs   func(storage.Capabilities) bool
	run     func(*suite)
	refusal func(*suite)
	gaps    bool // Options.OverwritesHaveGaps is about this
}

// suite is what one check works with.
type suite struct {
	*testing.T
	Options
	ctx   context.Context
	store storage.Storage
}

// partBytes is the size of a whole part: what S3 asks for, or less where bodies
// are to be small.
func (s *suite) partBytes() int64 {
	if s.MaxBody < storage.MinPartBytes {
		return 128 << 10
	}
	return storage.MinPartBytes
}

// Run checks the stores that open returns, one per check.
func Run(t *testing.T, open Factory, opts Options) {
	if opts.MaxBody == 0 {
		opts.MaxBody = 8 << 20
	}
	if opts.ListKeys == 0 {
		opts.ListKeys = 2500
	}
	for _, group := range [][]check{contentChecks, keyChecks, rangeChecks, partialChecks, conditionChecks, listChecks, failureChecks, multipartChecks, copyChecks, tagChecks} {
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
	if c.offers != nil && !c.offers(s.store) {
		outcome = Refused
		return
	}
	if c.needs == nil || c.needs(s.store.Capabilities()) {
		c.run(s)
		if c.gaps && opts.OverwritesHaveGaps {
			outcome = Gapped
		}
		return
	}
	outcome = Refused
	if c.refusal != nil {
		c.refusal(s)
	}
}

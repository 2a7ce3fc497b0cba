package fallbackuri

import (
	"time"

	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/storage"
)

// Walk says how a read visits the candidates.
type Walk string

const (
	// WalkSequential tries one candidate after another. It is the default.
	WalkSequential Walk = "sequential"
	// WalkParallel asks all at once; the first success wins.
	WalkParallel Walk = "parallel"
)

// ErrorClass says which errors of a candidate lead on to the next.
type ErrorClass string

const (
	// ErrorClassTransient: those that another candidate may not have. It is
	// the default.
	ErrorClassTransient ErrorClass = "transient"
	// ErrorClassAny: answers as well, but for those about preconditions.
	ErrorClassAny ErrorClass = "any"
)

// WriteMode says where a write goes.
type WriteMode string

const (
	// WriteAll writes to every candidate and fails if one does. It is the
	// default.
	WriteAll WriteMode = "all"
	// WriteFirstSuccess tries one after another until one takes the write.
	WriteFirstSuccess WriteMode = "first-success"
)

// DeleteMode says when a delete, which always goes to every candidate, has
// succeeded.
type DeleteMode string

const (
	// DeleteAny: one candidate confirmed it. It is the default.
	DeleteAny DeleteMode = "any"
	// DeleteAll: every candidate did.
	DeleteAll DeleteMode = "all"
)

// ListMode says how the lists of the candidates become one.
type ListMode string

const (
	// ListUnion names every key once, as the first candidate that holds it
	// tells. It is the default.
	ListUnion ListMode = "union"
	// ListConcat puts the lists one after another as they are.
	ListConcat ListMode = "concat"
)

// ListFailureMode says what becomes of a list when a candidate has none.
type ListFailureMode string

const (
	// ListThrow: it fails. It is the default.
	ListThrow ListFailureMode = "throw"
	// ListPartial: it lacks that candidate's keys, and an event tells.
	ListPartial ListFailureMode = "partial"
)

// Policy is everything about a walk that the URI itself does not say.
type Policy struct {
	Walk       Walk
	ErrorClass ErrorClass
	// NotFoundIsFinal: a key that a candidate does not hold is not looked for
	// in the next one.
	NotFoundIsFinal bool
	// PassAborts lets a candidate that gave up by itself be followed by the
	// next one; else it ends the walk. The caller's end always does, and a time
	// limit set here never does.
	PassAborts      bool
	WriteMode       WriteMode
	DeleteMode      DeleteMode
	ListMode        ListMode
	ListFailureMode ListFailureMode
	// MaxCandidates of one URI: 1 to 64, 0 is 16.
	MaxCandidates int
	// MaxDepth is how many fallback URIs may lie in each other: 1 to 8, 0 is 4.
	MaxDepth int
	// Timeout is how long a candidate may take to the first byte of its answer
	// and stall after it; 0 is the engine's default of 30 s. A nested fallback
	// URI has it once for each candidate in it.
	Timeout time.Duration
}

// complete fills in the defaults, or refuses p.
func (p Policy) complete() (Policy, error) {
	refuse := func(field string, value any) (Policy, error) {
		return p, storage.Errorf(storage.CodeRejected, "New", "policy.%s must not be %v", field, value)
	}
	switch {
	case !choose(&p.Walk, WalkSequential, WalkParallel):
		return refuse("walk", p.Walk)
	case !choose(&p.ErrorClass, ErrorClassTransient, ErrorClassAny):
		return refuse("errorClass", p.ErrorClass)
	case !choose(&p.WriteMode, WriteAll, WriteFirstSuccess):
		return refuse("writeMode", p.WriteMode)
	case !choose(&p.DeleteMode, DeleteAny, DeleteAll):
		return refuse("deleteMode", p.DeleteMode)
	case !choose(&p.ListMode, ListUnion, ListConcat):
		return refuse("listMode", p.ListMode)
	case !choose(&p.ListFailureMode, ListThrow, ListPartial):
		return refuse("listFailureMode", p.ListFailureMode)
	case p.MaxCandidates < 0 || p.MaxCandidates > uri.MaxCandidates:
		return refuse("maxCandidates", p.MaxCandidates)
	case p.MaxDepth < 0 || p.MaxDepth > uri.MaxDepth:
		return refuse("maxDepth", p.MaxDepth)
	case p.Timeout < 0:
		return refuse("timeout", p.Timeout)
	}
	if p.MaxCandidates == 0 {
		p.MaxCandidates = uri.DefaultMaxCandidates
	}
	if p.MaxDepth == 0 {
		p.MaxDepth = uri.DefaultMaxDepth
	}
	return p, nil
}

// choose reports whether *value is one of both; empty becomes the first.
func choose[T ~string](value *T, first, second T) bool {
	if *value == "" {
		*value = first
	}
	return *value == first || *value == second
}

package fallbackuri

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/storage"
)

// Failure is the cause of every error that this package makes of a walk; which
// fields are set depends on the code. URIs are redacted.
type Failure struct {
	// URI is the fallback URI.
	URI string
	// CandidateErrors say, in order, why each candidate did not answer: of
	// ALL_CANDIDATES_FAILED and LIST_UNION_FAILED.
	CandidateErrors []CandidateError
	// MirrorOutcomes say, in order, what became of a write at each candidate:
	// of WRITE_MIRROR_FAILED.
	MirrorOutcomes []MirrorOutcome
	// Depth at which the walk was refused: of MAX_DEPTH_EXCEEDED.
	Depth int
	// CycleChain is the way from the outermost URI back to one of its own: of
	// CIRCULAR_REFERENCE.
	CycleChain []string
	// last is the error of the last candidate that failed.
	last error
}

// CandidateError is why a candidate did not answer.
type CandidateError struct {
	URI string
	Err error
}

// MirrorOutcome is what became of a write at one candidate.
type MirrorOutcome struct {
	URI    string
	Status MirrorStatus
	// Err is set where Status is MirrorRejected.
	Err error
}

// MirrorStatus is what became of a write at a candidate.
type MirrorStatus string

// What becomes of a write: done, refused, or not asked for, since the candidate
// leads back to the URI, or since the one that decides has refused.
const (
	MirrorFulfilled MirrorStatus = "fulfilled"
	MirrorRejected  MirrorStatus = "rejected"
	MirrorSkipped   MirrorStatus = "skipped"
)

// Error implements error.
func (f *Failure) Error() string {
	var parts []string
	for _, c := range f.CandidateErrors {
		parts = append(parts, c.URI+": "+describe(c.Err))
	}
	for _, m := range f.MirrorOutcomes {
		if m.Err != nil {
			parts = append(parts, m.URI+": "+describe(m.Err))
		} else {
			parts = append(parts, m.URI+": "+string(m.Status))
		}
	}
	if len(f.CycleChain) > 0 {
		parts = append(parts, strings.Join(f.CycleChain, " -> "))
	}
	if len(parts) == 0 {
		return f.URI
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns the last candidate's error. Where some candidates have failed
// and others hold nothing, it is the last failure: an outage must not pass for
// a missing key.
func (f *Failure) Unwrap() error { return f.last }

// describe returns what may be shown of a candidate's error: its code and its own
// words. A cause may repeat a URL with its query and is left out.
func describe(err error) string {
	var e *storage.Error
	if !errors.As(err, &e) {
		return string(storage.CodeUnavailable)
	}
	var below *Failure
	if errors.As(e.Cause, &below) {
		return fmt.Sprintf("%s (%s)", e.Code, below)
	}
	if e.Message == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Message
}

// ParseFallbackURI reads a fallback URI of at most maxCandidates candidates, 0
// for 16. Its errors are NO_CANDIDATES and INVALID_URI.
func ParseFallbackURI(text string, maxCandidates int) (uri.URI, error) {
	u, err := uri.Parse(text, maxCandidates)
	return u, grammarError("Parse", err)
}

// BuildFallbackURI makes the canonical fallback URI of complete URIs, under the
// same limits.
func BuildFallbackURI(candidates []string) (string, error) {
	u, err := uri.Build(candidates, 0)
	if err != nil {
		return "", grammarError("Build", err)
	}
	return u.String(), nil
}

// grammarError makes an error of the contract of one of the parser's.
func grammarError(op string, err error) error {
	var e *uri.Error
	if !errors.As(err, &e) {
		return err
	}
	return storage.Errorf(storage.Code(e.Code), op, "%s", e.Reason).WithCause(&Failure{URI: e.URI})
}

// aborted is the error of a call that the caller, or a candidate, gave up.
func (l *Ladder) aborted(op string, cause error) error {
	return storage.Errorf(storage.CodeFallbackAborted, op, "the walk was given up").
		WithCause(&Failure{URI: l.shown, last: cause})
}

func (l *Ladder) tooDeep(op string, depth int) error {
	return storage.Errorf(storage.CodeFallbackMaxDepthExceeded, op, "fallback URIs are nested more than %d deep", depth).
		WithCause(&Failure{URI: l.shown, Depth: depth})
}

func (l *Ladder) circular(op string, chain []string) error {
	return storage.Errorf(storage.CodeFallbackCircularReference, op, "every candidate leads back to where the walk came from").
		WithCause(&Failure{URI: l.shown, CycleChain: chain})
}

func (l *Ladder) allFailed(op string, tried []CandidateError) error {
	e := storage.Errorf(storage.CodeFallbackAllCandidatesFailed, op, "no candidate has answered")
	e.Status, e.AttemptCount, e.Neutral = http.StatusServiceUnavailable, len(tried), anyAnswered(tried)
	return e.WithCause(&Failure{URI: l.shown, CandidateErrors: tried, last: lastOf(tried)})
}

func (l *Ladder) unionFailed(op string, tried []CandidateError, all bool) error {
	e := storage.Errorf(storage.CodeFallbackListUnionFailed, op, "a candidate could not be listed")
	e.Status, e.AttemptCount, e.Neutral = http.StatusServiceUnavailable, len(tried), !all || anyAnswered(tried)
	return e.WithCause(&Failure{URI: l.shown, CandidateErrors: tried, last: lastOf(tried)})
}

// mirrorFailed is a write that missed a candidate: an outage if it reached none
// and one is at fault for that, else the final answer to the write.
func (l *Ladder) mirrorFailed(op string, outcomes []MirrorOutcome) error {
	e := storage.Errorf(storage.CodeFallbackWriteMirrorFailed, op, "the write did not reach every candidate")
	e.Status, e.AttemptCount = http.StatusFailedDependency, len(outcomes)
	var tried []CandidateError
	reached, outage := false, false
	for _, o := range outcomes {
		switch o.Status {
		case MirrorFulfilled:
			reached = true
		case MirrorRejected:
			tried = append(tried, CandidateError{o.URI, o.Err})
			outage = outage || storage.Classify(o.Err) != storage.ClassSemantic
			if unknown(o.Err) {
				e.Outcome = storage.OutcomeUnknown
			}
		}
	}
	if outage && !reached {
		e.Status = http.StatusServiceUnavailable
	}
	e.Neutral = anyAnswered(tried)
	return e.WithCause(&Failure{URI: l.shown, MirrorOutcomes: outcomes, last: lastOf(tried)})
}

func unknown(err error) bool {
	var e *storage.Error
	return errors.As(err, &e) && e.Outcome == storage.OutcomeUnknown
}

// anyAnswered reports whether one of the candidates is alive.
func anyAnswered(tried []CandidateError) bool {
	for _, t := range tried {
		var e *storage.Error
		if storage.Classify(t.Err) == storage.ClassSemantic || errors.As(t.Err, &e) && e.Neutral {
			return true
		}
	}
	return false
}

func lastOf(tried []CandidateError) error {
	var last error
	for _, t := range tried {
		if last == nil || storage.CodeOf(t.Err) != storage.CodeKeyNotFound || storage.CodeOf(last) == storage.CodeKeyNotFound {
			last = t.Err
		}
	}
	return last
}

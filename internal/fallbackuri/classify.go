package fallbackuri

import (
	"github.com/suaveplan/storagemux/internal/storage"
)

// verdict is what an outcome of one candidate means for the others.
type verdict int

const (
	// done: it is the answer.
	done verdict = iota
	// next: another candidate may do better.
	next
	// stop: it is the answer although it is an error.
	stop
	// abort: nobody waits for an answer any more, or nobody should.
	abort
)

// String returns the verdict's name as spans and counters carry it.
func (v verdict) String() string {
	return [...]string{"ok", "transient", "semantic", "abort"}[v]
}

// judge lays the policy over the one classification of errors.
func (p *Policy) judge(err error, writes bool) verdict {
	code := storage.CodeOf(err)
	switch class := storage.Classify(err); {
	case class == storage.ClassNone:
		return done
	case code == storage.CodePreconditionFailed, code == storage.CodeNotModified, code == storage.CodeKeyNotFound && writes:
		// They answer what was asked, which a walk may not turn into its
		// opposite. To a write, a missing key is a precondition.
		return stop
	case class == storage.ClassAbort && !p.PassAborts:
		return abort
	case class != storage.ClassSemantic:
		return next
	case code == storage.CodeKeyNotFound && !p.NotFoundIsFinal:
		return next
	case p.ErrorClass == ErrorClassAny && (code != storage.CodeKeyNotFound || !p.NotFoundIsFinal):
		return next
	}
	return stop
}

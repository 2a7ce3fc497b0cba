package storage

import (
	"context"
	"errors"
	"net/http"
)

// Class says what an error means for the choice of the next backend.
type Class int

const (
	// ClassNone is the class of a nil error.
	ClassNone Class = iota
	// ClassTransient: the backend is at fault, another may do better.
	ClassTransient
	// ClassSemantic: the answer is valid and any other backend that holds
	// the same data would give it too.
	ClassSemantic
	// ClassAbort: the caller left.
	ClassAbort
)

// String returns the class's name as spans carry it.
func (c Class) String() string {
	switch c {
	case ClassTransient:
		return "transient"
	case ClassSemantic:
		return "semantic"
	case ClassAbort:
		return "abort"
	default:
		return "ok"
	}
}

// Causes with which contexts of this module are cancelled; context.Cause
// tells them apart. A plain context.Canceled or DeadlineExceeded means that
// the caller itself gave up.
var (
	// CauseTimeout: the backend did not answer or stalled for too long.
	CauseTimeout = errors.New("backend timeout")
	// CauseDrain: the backend is being removed and its time is up.
	CauseDrain = errors.New("backend drained")
	// CauseLostRace: another backend answered first.
	CauseLostRace = errors.New("another backend answered first")
)

// Classify is the one place that decides what an error means: it looks at the
// outermost Error's code, then at its HTTP status, and treats what it does not
// know as transient.
func Classify(err error) Class {
	if err == nil {
		return ClassNone
	}
	var e *Error
	if errors.As(err, &e) {
		if class, ok := classOfCode[e.Code]; ok {
			return class
		}
		if e.Status != 0 {
			return ClassifyStatus(e.Status)
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return ClassAbort
	}
	return ClassTransient
}

// ClassifyStatus gives the class of an HTTP answer that says no.
func ClassifyStatus(status int) Class {
	switch {
	case status < 400:
		return ClassNone
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
		return ClassTransient
	case status < 500:
		return ClassSemantic
	case status == http.StatusNotImplemented, status == http.StatusLoopDetected:
		return ClassSemantic
	default:
		return ClassTransient
	}
}

// classOfCode holds each code whose class does not depend on anything else.
// CodeUnavailable is left out on purpose: its status decides.
var classOfCode = map[Code]Class{
	CodeKeyNotFound:        ClassSemantic,
	CodeInvalidKey:         ClassSemantic,
	CodeInvalidRange:       ClassSemantic,
	CodeInvalidBody:        ClassSemantic,
	CodePreconditionFailed: ClassSemantic,
	CodeNotModified:        ClassSemantic,
	CodeBucketNotFound:     ClassSemantic,
	CodeAccessDenied:       ClassSemantic,
	CodeCredentialExpired:  ClassSemantic,
	CodeUnsupported:        ClassSemantic,
	CodeTooLarge:           ClassSemantic,
	CodeRejected:           ClassSemantic,
	CodeUploadNotFound:     ClassSemantic,
	CodeInvalidPart:        ClassSemantic,
	CodeNoSpace:            ClassTransient,
	CodeThrottled:          ClassTransient,

	// CodeFallbackWriteMirrorFailed is left out: its status tells a write that
	// reached nobody from one that missed somebody.
	CodeFallbackNoCandidates:        ClassSemantic,
	CodeFallbackInvalidURI:          ClassSemantic,
	CodeFallbackAllCandidatesFailed: ClassTransient,
	CodeFallbackListUnionFailed:     ClassTransient,
	CodeFallbackAborted:             ClassAbort,
	CodeFallbackMaxDepthExceeded:    ClassSemantic,
	CodeFallbackCircularReference:   ClassSemantic,

	CodeAllBackendsDown:         ClassTransient,
	CodeBackendTimeout:          ClassTransient,
	CodeBackendDraining:         ClassTransient,
	CodeHealthcheckFailed:       ClassTransient,
	CodeBackendAborted:          ClassAbort,
	CodeWriteFanoutPartial:      ClassSemantic,
	CodeRecursionDepthExceeded:  ClassSemantic,
	CodeNoBackendsConfigured:    ClassSemantic,
	CodeInvalidMode:             ClassSemantic,
	CodeInvalidWeight:           ClassSemantic,
	CodeBackendNotFound:         ClassSemantic,
	CodeBackendNameConflict:     ClassSemantic,
	CodeWeightedRequiresWeights: ClassSemantic,
	CodeMirrorOriginRequired:    ClassSemantic,
}

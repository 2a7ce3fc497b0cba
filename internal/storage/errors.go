package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code names what went wrong. It is stable and is the same in errors, status,
// metrics, spans, logs and documentation.
type Code string

// Codes of single stores.
const (
	CodeKeyNotFound        Code = "STORAGE.KEY_NOT_FOUND"
	CodeInvalidKey         Code = "STORAGE.INVALID_KEY"
	CodeInvalidRange       Code = "STORAGE.INVALID_RANGE"
	CodeInvalidBody        Code = "STORAGE.INVALID_BODY"
	CodePreconditionFailed Code = "STORAGE.PRECONDITION_FAILED"
	CodeNotModified        Code = "STORAGE.NOT_MODIFIED"
	CodeBucketNotFound     Code = "STORAGE.BUCKET_NOT_FOUND"
	CodeAccessDenied       Code = "STORAGE.ACCESS_DENIED"
	CodeCredentialExpired  Code = "STORAGE.CREDENTIAL_EXPIRED"
	CodeUnsupported        Code = "STORAGE.UNSUPPORTED"
	CodeNoSpace            Code = "STORAGE.NO_SPACE"
	CodeTooLarge           Code = "STORAGE.TOO_LARGE"
	CodeRejected           Code = "STORAGE.REJECTED"
	CodeThrottled          Code = "STORAGE.THROTTLED"
	CodeUnavailable        Code = "STORAGE.UNAVAILABLE"
	CodeUploadNotFound     Code = "STORAGE.UPLOAD_NOT_FOUND"
	CodeInvalidPart        Code = "STORAGE.INVALID_PART"
)

// Codes of the mux: the fourteen of the specification.
const (
	CodeAllBackendsDown         Code = "STORAGE_MUX.ALL_BACKENDS_DOWN"
	CodeNoBackendsConfigured    Code = "STORAGE_MUX.NO_BACKENDS_CONFIGURED"
	CodeHealthcheckFailed       Code = "STORAGE_MUX.HEALTHCHECK_FAILED"
	CodeBackendTimeout          Code = "STORAGE_MUX.BACKEND_TIMEOUT"
	CodeInvalidMode             Code = "STORAGE_MUX.INVALID_MODE"
	CodeInvalidWeight           Code = "STORAGE_MUX.INVALID_WEIGHT"
	CodeWriteFanoutPartial      Code = "STORAGE_MUX.WRITE_FANOUT_PARTIAL"
	CodeBackendAborted          Code = "STORAGE_MUX.BACKEND_ABORTED"
	CodeBackendNotFound         Code = "STORAGE_MUX.BACKEND_NOT_FOUND"
	CodeBackendNameConflict     Code = "STORAGE_MUX.BACKEND_NAME_CONFLICT"
	CodeBackendDraining         Code = "STORAGE_MUX.BACKEND_DRAINING"
	CodeWeightedRequiresWeights Code = "STORAGE_MUX.WEIGHTED_REQUIRES_WEIGHTS"
	CodeMirrorOriginRequired    Code = "STORAGE_MUX.MIRROR_ORIGIN_REQUIRED"
	CodeRecursionDepthExceeded  Code = "STORAGE_MUX.RECURSION_DEPTH_EXCEEDED"
)

// Codes of fallback URIs: the eight of their design.
const (
	CodeFallbackNoCandidates        Code = "FALLBACK_URI.NO_CANDIDATES"
	CodeFallbackInvalidURI          Code = "FALLBACK_URI.INVALID_URI"
	CodeFallbackAllCandidatesFailed Code = "FALLBACK_URI.ALL_CANDIDATES_FAILED"
	CodeFallbackWriteMirrorFailed   Code = "FALLBACK_URI.WRITE_MIRROR_FAILED"
	CodeFallbackListUnionFailed     Code = "FALLBACK_URI.LIST_UNION_FAILED"
	CodeFallbackAborted             Code = "FALLBACK_URI.ABORTED"
	CodeFallbackMaxDepthExceeded    Code = "FALLBACK_URI.MAX_DEPTH_EXCEEDED"
	CodeFallbackCircularReference   Code = "FALLBACK_URI.CIRCULAR_REFERENCE"
)

// Error is every error of a Storage. errors.Is compares by Code:
// errors.Is(err, ErrKeyNotFound) holds for each Error with that code.
type Error struct {
	Code Code
	// Op is the operation that failed, e.g. "Stat".
	Op string
	// Backend is the member's name as the mux knows it, empty outside one.
	Backend string
	// Mode, AttemptIndex (from 0) and AttemptCount are set by a mux.
	Mode         string
	AttemptIndex int
	AttemptCount int
	// Status is the HTTP status of the store's answer, 0 without one.
	Status int
	// RetryAfter is how long the store asked to be left alone.
	RetryAfter time.Duration
	// Outcome says, of a failed write, what is known about its effect.
	Outcome Outcome
	// Neutral: the error says nothing about the health of the store as a
	// whole, since a part of it has answered.
	Neutral bool
	// Message says what was attempted on what. It never holds credentials.
	Message string
	// Cause is the error below, possibly made by errors.Join.
	Cause error
}

// Outcome is what is known about the effect of a failed write.
type Outcome int

const (
	// OutcomeNone: the write had no effect.
	OutcomeNone Outcome = iota
	// OutcomeUnknown: the whole body was sent and no answer came; the
	// write may have taken effect.
	OutcomeUnknown
)

// Targets for errors.Is.
var (
	ErrKeyNotFound        = &Error{Code: CodeKeyNotFound}
	ErrInvalidKey         = &Error{Code: CodeInvalidKey}
	ErrInvalidRange       = &Error{Code: CodeInvalidRange}
	ErrInvalidBody        = &Error{Code: CodeInvalidBody}
	ErrPreconditionFailed = &Error{Code: CodePreconditionFailed}
	ErrNotModified        = &Error{Code: CodeNotModified}
	ErrUnsupported        = &Error{Code: CodeUnsupported}
	ErrNoSpace            = &Error{Code: CodeNoSpace}
	ErrAllBackendsDown    = &Error{Code: CodeAllBackendsDown}
	ErrBackendTimeout     = &Error{Code: CodeBackendTimeout}
	ErrBackendAborted     = &Error{Code: CodeBackendAborted}
	ErrBackendDraining    = &Error{Code: CodeBackendDraining}
	ErrUploadNotFound     = &Error{Code: CodeUploadNotFound}
	ErrInvalidPart        = &Error{Code: CodeInvalidPart}
)

// Errorf makes an Error of code for operation op.
func Errorf(code Code, op, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, Message: fmt.Sprintf(format, args...)}
}

// Interrupted is the error of an operation that stopped because ctx ended. Its
// cause is ctx's, which decides the class.
func Interrupted(ctx context.Context, op, doing string) *Error {
	return Errorf(CodeUnavailable, op, "interrupted while %s", doing).WithCause(context.Cause(ctx))
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	if e.Op != "" {
		b.WriteString(": " + e.Op)
	}
	if e.Backend != "" {
		b.WriteString(" on backend " + e.Backend)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is reports whether target is an Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// WithCause returns e with its cause set. It is for use on a fresh Error.
func (e *Error) WithCause(err error) *Error {
	e.Cause = err
	return e
}

// CodeOf returns the code of the outermost Error in err's chain, or "".
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

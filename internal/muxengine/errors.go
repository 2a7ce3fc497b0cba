package muxengine

import (
	"errors"
	"net/http"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// configError refuses a configuration.
func configError(cfg *Config, code storage.Code, backend, format string, args ...any) error {
	e := storage.Errorf(code, "", format, args...)
	e.Backend, e.Mode = backend, string(cfg.Mode)
	return e
}

// annotate returns err as a *storage.Error that says which member of which mux
// gave it at which attempt. What a nested mux said about itself stays.
func annotate(err error, op operation, m *member, mode Mode, index, count int) *storage.Error {
	var e *storage.Error
	if errors.As(err, &e) {
		clone := *e
		e = &clone
	} else {
		e = &storage.Error{Code: storage.CodeUnavailable, Op: op.String(), Cause: err}
	}
	if e.Code != storage.CodeBackendAborted && storage.Classify(e) == storage.ClassAbort {
		// Not the caller's end, or it would have been seen before: a time
		// limit of the store's own client, for a connection say.
		e.Status = http.StatusGatewayTimeout
	}
	if e.Backend == "" {
		e.Backend = m.path
	}
	e.Mode, e.AttemptIndex, e.AttemptCount = string(mode), index, count
	return e
}

// retryAfterOf returns how long the store asked to be left alone.
func retryAfterOf(err error) time.Duration {
	var e *storage.Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// neutral reports whether err says nothing about the health of its member.
func neutral(err error) bool {
	var e *storage.Error
	return errors.As(err, &e) && e.Neutral
}

// outcomeOf returns what err says about the effect of the write that failed.
func outcomeOf(err error) storage.Outcome {
	var e *storage.Error
	if errors.As(err, &e) {
		return e.Outcome
	}
	return storage.OutcomeNone
}

// Describe returns err for people who may read the status but not the
// credentials: its code, its own words and the root of its cause. What lies
// between, such as a URL with its query, is left out.
func Describe(err error) LastError {
	last := LastError{Code: storage.CodeUnavailable, Time: time.Now()}
	var e *storage.Error
	root := err
	if errors.As(err, &e) {
		last.Code, last.Message = e.Code, e.Message
		root = e.Cause
	}
	for next := root; next != nil; next = cause(next) {
		root = next
	}
	switch {
	case root == nil:
	case last.Message == "":
		last.Message = root.Error()
	default:
		last.Message += ": " + root.Error()
	}
	return last
}

// cause returns what err wraps, of several the first.
func cause(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
		return joined.Unwrap()[0]
	}
	return errors.Unwrap(err)
}

// bodyError is the error of a write whose body the client did not bring to its
// end, whatever a store makes of it.
func bodyError(op operation, cause error) *storage.Error {
	var e *storage.Error
	if errors.As(cause, &e) {
		clone := *e
		clone.Neutral = true // behind the body of a copy is a store as well
		return &clone
	}
	code := storage.CodeInvalidBody
	if storage.Classify(cause) == storage.ClassAbort {
		code = storage.CodeBackendAborted
	}
	return storage.Errorf(code, op.String(), "reading the body").WithCause(cause)
}

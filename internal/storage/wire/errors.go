package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// CodeOfStatus returns what an answer of 300 or more means that says no more
// than its status. ofKey says that it is about an object and not about the
// whole store.
func CodeOfStatus(status int, ofKey bool) storage.Code {
	switch status {
	case http.StatusNotFound, http.StatusGone:
		if !ofKey {
			return storage.CodeBucketNotFound
		}
		return storage.CodeKeyNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return storage.CodeAccessDenied
	case http.StatusPreconditionFailed:
		return storage.CodePreconditionFailed
	case http.StatusNotModified:
		return storage.CodeNotModified
	case http.StatusRequestedRangeNotSatisfiable:
		return storage.CodeInvalidRange
	case http.StatusRequestEntityTooLarge:
		return storage.CodeTooLarge
	case http.StatusRequestURITooLong:
		return storage.CodeInvalidKey
	case http.StatusTooManyRequests:
		return storage.CodeThrottled
	case http.StatusInsufficientStorage:
		return storage.CodeNoSpace
	case http.StatusNotImplemented:
		return storage.CodeUnsupported
	case http.StatusRequestTimeout:
		return storage.CodeUnavailable
	}
	if status >= 500 {
		return storage.CodeUnavailable
	}
	return storage.CodeRejected
}

// Answered is the error of an answer with status and header to op on key, which
// is empty where the request was about the whole store.
func Answered(code storage.Code, op, key string, status int, header http.Header, message string) *storage.Error {
	e := storage.Errorf(code, op, "the store answered %d", status)
	if message != "" {
		e.Message += " " + message
	}
	if key != "" {
		e.Message += " on " + strconv.Quote(key)
	}
	e.Status = status
	e.RetryAfter = RetryAfter(header)
	return e
}

// RetryAfter returns how long the header Retry-After asks for.
func RetryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if value == "" {
		return 0
	}
	if seconds, err := strconv.Atoi(value); err == nil {
		return max(0, time.Duration(min(seconds, 1<<30))*time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		now := time.Now()
		if date, err := http.ParseTime(h.Get("Date")); err == nil {
			now = date
		}
		return max(0, at.Sub(now))
	}
	return 0
}

// Unanswered is the error of a request that got no answer. sent says that it is
// a write of which the store may have all.
func Unanswered(ctx context.Context, op, key string, err error, sent bool) *storage.Error {
	e := storage.Errorf(storage.CodeUnavailable, op, "asking the store for %q", key).WithCause(err)
	if key == "" {
		e.Message = "asking the store"
	}
	if ctx.Err() != nil {
		e = storage.Interrupted(ctx, op, "waiting for the store")
	}
	if sent && !neverConnected(err) {
		e.Outcome = storage.OutcomeUnknown
	}
	return e
}

// neverConnected reports that a request cannot have reached the store.
func neverConnected(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &dns) || errors.Is(err, syscall.ECONNREFUSED) ||
		err != nil && strings.Contains(err.Error(), "tls: ")
}

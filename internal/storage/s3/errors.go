package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// answer is what a store says when it says no.
type answer struct {
	status  int
	header  http.Header
	code    string
	message string
}

// maxErrorBody is what is read of an error's body.
const maxErrorBody = 64 << 10

// readAnswer reads the error in resp and closes it.
func readAnswer(resp *http.Response) answer {
	a := answer{status: resp.StatusCode, header: resp.Header}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	if err == nil {
		a.code, a.message = parseError(body)
	}
	return a
}

func parseError(body []byte) (code, message string) {
	var doc struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}
	if xml.Unmarshal(body, &doc) != nil {
		return "", ""
	}
	return doc.Code, doc.Message
}

// meanings of the codes that say more than their status does.
var meanings = map[string]storage.Code{
	"NoSuchKey":                    storage.CodeKeyNotFound,
	"NoSuchVersion":                storage.CodeKeyNotFound,
	"NoSuchBucket":                 storage.CodeBucketNotFound,
	"AccessDenied":                 storage.CodeAccessDenied,
	"AllAccessDisabled":            storage.CodeAccessDenied,
	"AccountProblem":               storage.CodeAccessDenied,
	"InvalidAccessKeyId":           storage.CodeAccessDenied,
	"XAdminUserNotFound":           storage.CodeAccessDenied, // versitygw's, with 404
	"InvalidToken":                 storage.CodeAccessDenied,
	"SignatureDoesNotMatch":        storage.CodeAccessDenied,
	"AuthorizationHeaderMalformed": storage.CodeAccessDenied,
	"ExpiredToken":                 storage.CodeCredentialExpired,
	"ExpiredTokenException":        storage.CodeCredentialExpired,
	"TokenRefreshRequired":         storage.CodeCredentialExpired,
	"PreconditionFailed":           storage.CodePreconditionFailed,
	"ConditionalRequestConflict":   storage.CodePreconditionFailed,
	"InvalidRange":                 storage.CodeInvalidRange,
	"SlowDown":                     storage.CodeThrottled,
	"SlowDownRead":                 storage.CodeThrottled,
	"SlowDownWrite":                storage.CodeThrottled,
	"RequestLimitExceeded":         storage.CodeThrottled,
	"Throttling":                   storage.CodeThrottled,
	"ThrottlingException":          storage.CodeThrottled,
	"TooManyRequests":              storage.CodeThrottled,
	"NotImplemented":               storage.CodeUnsupported,
	"BadDigest":                    storage.CodeInvalidBody,
	"InvalidDigest":                storage.CodeInvalidBody,
	"IncompleteBody":               storage.CodeInvalidBody,
	"XAmzContentSHA256Mismatch":    storage.CodeInvalidBody,
	"XAmzContentChecksumMismatch":  storage.CodeInvalidBody,
	"EntityTooLarge":               storage.CodeTooLarge,
	"MetadataTooLarge":             storage.CodeTooLarge,
	"KeyTooLongError":              storage.CodeInvalidKey,
	"KeyTooLong":                   storage.CodeInvalidKey,
	"InvalidURI":                   storage.CodeInvalidKey,
	"InvalidObjectName":            storage.CodeInvalidKey,
	"XMinioInvalidObjectName":      storage.CodeInvalidKey,
	"QuotaExceeded":                storage.CodeNoSpace,
	"XMinioStorageFull":            storage.CodeNoSpace,
	"InsufficientStorage":          storage.CodeNoSpace,
	"RequestTimeout":               storage.CodeUnavailable,
	clockSkewed:                    storage.CodeUnavailable,
}

const clockSkewed = "RequestTimeTooSkewed"

// meaning returns the code of an answer to a request for a key, or for the
// bucket if key is empty.
func (a answer) meaning(key string) storage.Code {
	if code, known := meanings[a.code]; known {
		return code
	}
	switch a.status {
	case http.StatusNotFound:
		switch {
		case a.code != "":
			return storage.CodeRejected // something else is missing, not the key
		case key == "":
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
	case http.StatusTooManyRequests:
		return storage.CodeThrottled
	case http.StatusInsufficientStorage:
		return storage.CodeNoSpace
	case http.StatusNotImplemented:
		return storage.CodeUnsupported
	case http.StatusRequestTimeout:
		return storage.CodeUnavailable
	}
	if a.status >= 500 {
		return storage.CodeUnavailable
	}
	return storage.CodeRejected
}

// error returns a as an error of op on key, which is empty for the bucket.
func (a answer) error(op, key string) *storage.Error {
	e := storage.Errorf(a.meaning(key), op, "the store answered %d", a.status)
	if a.code != "" {
		e.Message += " " + a.code
	}
	if a.message != "" {
		e.Message += ": " + a.message
	}
	if key != "" {
		e.Message += " on " + strconv.Quote(key)
	}
	if e.Code == storage.CodeAccessDenied && a.code == "" {
		e.Message += "; a store says this of a missing key too where listing is not allowed"
	}
	e.Status = a.status
	switch a.code {
	case "RequestTimeout", clockSkewed:
		// Sent with 400 and 403, though another try may well succeed.
		e.Status = http.StatusRequestTimeout
	}
	e.RetryAfter = retryAfter(a.header)
	return e
}

func retryAfter(h http.Header) time.Duration {
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

// unanswered is the error of a request that got no answer. whole says that all
// of a write was sent by then.
func unanswered(ctx context.Context, op, key string, err error, whole bool) *storage.Error {
	e := storage.Errorf(storage.CodeUnavailable, op, "asking the store for %q", key).WithCause(err)
	if key == "" {
		e.Message = "asking the store for the bucket"
	}
	if ctx.Err() != nil {
		e = storage.Interrupted(ctx, op, "waiting for the store")
	}
	if whole && !neverConnected(err) {
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

package s3

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
	"github.com/suaveplan/storagemux/internal/storage"
)

// apiError is an error as S3 tells it to a client.
type apiError struct {
	Code    string
	Status  int
	Message string
	// RetryAfter is sent where Status is 503.
	RetryAfter time.Duration
	// StorageCode is the storage's own code, if it came from there.
	StorageCode storage.Code
	// Header holds what the answer carries besides.
	Header map[string]string
	cause  error
}

// Error implements error.
func (e *apiError) Error() string {
	if e.cause != nil {
		return e.Code + ": " + e.cause.Error()
	}
	return e.Code + ": " + e.Message
}

// Unwrap returns the cause.
func (e *apiError) Unwrap() error { return e.cause }

func refuse(code string, status int, format string, args ...any) *apiError {
	return &apiError{Code: code, Status: status, Message: fmt.Sprintf(format, args...)}
}

func invalidArgument(format string, args ...any) *apiError {
	return refuse("InvalidArgument", http.StatusBadRequest, format, args...)
}

func notImplemented(format string, args ...any) *apiError {
	return refuse("NotImplemented", http.StatusNotImplemented, format, args...)
}

// signatureStatus gives the status of sigv4's codes that are not 400.
var signatureStatus = map[sigv4.Code]int{
	sigv4.CodeAccessDenied:          http.StatusForbidden,
	sigv4.CodeInvalidAccessKeyID:    http.StatusForbidden,
	sigv4.CodeSignatureDoesNotMatch: http.StatusForbidden,
	sigv4.CodeRequestTimeTooSkewed:  http.StatusForbidden,
	sigv4.CodeMissingContentLength:  http.StatusLengthRequired,
	sigv4.CodeNotImplemented:        http.StatusNotImplemented,
}

// answer is what a storage code becomes.
type answer struct {
	code    string
	status  int
	message string
}

// A failure of a store that is not the client's to mend is InternalError or
// ServiceUnavailable, which every client knows; 502 says that a store refused
// us, so that nobody looks for the fault in the client's keys.
var storageAnswers = map[storage.Code]answer{
	storage.CodeKeyNotFound:        {"NoSuchKey", http.StatusNotFound, "The specified key does not exist."},
	storage.CodeInvalidKey:         {"InvalidArgument", http.StatusBadRequest, "The key is not valid here."},
	storage.CodeInvalidRange:       {"InvalidRange", http.StatusRequestedRangeNotSatisfiable, "The requested range cannot be satisfied."},
	storage.CodeInvalidBody:        {"InternalError", http.StatusInternalServerError, "A backend did not receive the content as it was sent."},
	storage.CodePreconditionFailed: {"PreconditionFailed", http.StatusPreconditionFailed, "At least one of the preconditions you specified did not hold."},
	storage.CodeNotModified:        {"NotModified", http.StatusNotModified, ""},
	storage.CodeBucketNotFound:     {"InternalError", http.StatusBadGateway, "A backend does not have its bucket."},
	storage.CodeAccessDenied:       {"InternalError", http.StatusBadGateway, "A backend refused the credentials it was configured with."},
	storage.CodeCredentialExpired:  {"InternalError", http.StatusBadGateway, "The credentials of a backend have expired."},
	storage.CodeUnsupported:        {"NotImplemented", http.StatusNotImplemented, "The backends cannot do what the request asks for."},
	storage.CodeNoSpace:            {"InsufficientStorage", http.StatusInsufficientStorage, "A backend is full."},
	storage.CodeTooLarge:           {"EntityTooLarge", http.StatusBadRequest, "The object is larger than a backend allows."},
	storage.CodeRejected:           {"InvalidRequest", http.StatusBadRequest, "A backend rejected the request."},
	storage.CodeThrottled:          {"SlowDown", http.StatusServiceUnavailable, "Please reduce your request rate."},
	storage.CodeUploadNotFound:     {"NoSuchUpload", http.StatusNotFound, "The specified upload does not exist. It may have been aborted or completed."},
	storage.CodeInvalidPart:        {"InvalidPart", http.StatusBadRequest, "One or more of the specified parts could not be found, or its entity tag does not match."},
	storage.CodeUnavailable:        {"ServiceUnavailable", http.StatusServiceUnavailable, "A backend is not available."},

	storage.CodeAllBackendsDown:        {"ServiceUnavailable", http.StatusServiceUnavailable, "No backend is available for this request."},
	storage.CodeBackendTimeout:         {"ServiceUnavailable", http.StatusServiceUnavailable, "A backend did not answer in time."},
	storage.CodeBackendDraining:        {"ServiceUnavailable", http.StatusServiceUnavailable, "A backend is being removed."},
	storage.CodeHealthcheckFailed:      {"ServiceUnavailable", http.StatusServiceUnavailable, "A backend failed its health check."},
	storage.CodeNoBackendsConfigured:   {"ServiceUnavailable", http.StatusServiceUnavailable, "There are no backends."},
	storage.CodeWriteFanoutPartial:     {"InternalError", http.StatusInternalServerError, "The write did not reach every backend."},
	storage.CodeRecursionDepthExceeded: {"LoopDetected", http.StatusLoopDetected, "The request came back to a proxy it had passed."},

	storage.CodeFallbackAllCandidatesFailed: {"ServiceUnavailable", http.StatusServiceUnavailable, "No candidate of a fallback backend is available for this request."},
	storage.CodeFallbackListUnionFailed:     {"ServiceUnavailable", http.StatusServiceUnavailable, "A candidate of a fallback backend cannot be listed."},
	storage.CodeFallbackAborted:             {"ServiceUnavailable", http.StatusServiceUnavailable, "A candidate of a fallback backend gave up."},
	storage.CodeFallbackWriteMirrorFailed:   {"InternalError", http.StatusInternalServerError, "The write did not reach every candidate of a fallback backend."},
	storage.CodeFallbackMaxDepthExceeded:    {"LoopDetected", http.StatusLoopDetected, "Fallback URIs are nested too deep."},
	storage.CodeFallbackCircularReference:   {"LoopDetected", http.StatusLoopDetected, "Every candidate of a fallback backend leads back to it."},
}

var internalError = answer{"InternalError", http.StatusInternalServerError, "An internal error occurred. Please try again."}

// defaultRetryAfter is what a 503 asks for where the storage does not say.
const defaultRetryAfter = time.Second

// toAPIError translates any error. What a client did wrong wins over what a
// storage made of it.
func toAPIError(err error) *apiError {
	var own *apiError
	if errors.As(err, &own) {
		return own
	}
	var signature *sigv4.Error
	if errors.As(err, &signature) {
		status, ok := signatureStatus[signature.Code]
		if !ok {
			status = http.StatusBadRequest
		}
		return &apiError{Code: string(signature.Code), Status: status, Message: signature.Message, cause: err}
	}
	a := internalError
	var e *storage.Error
	out := &apiError{cause: err, RetryAfter: defaultRetryAfter}
	if errors.As(err, &e) {
		out.StorageCode = e.Code
		if known, ok := storageAnswers[e.Code]; ok {
			a = known
		}
		if e.RetryAfter > 0 {
			out.RetryAfter = e.RetryAfter
		}
	}
	out.Code, out.Status, out.Message = a.code, a.status, a.message
	return out
}

// retryAfter returns whole seconds, at least one.
func (e *apiError) retryAfter() string {
	seconds := int64((e.RetryAfter + time.Second - 1) / time.Second)
	return strconv.FormatInt(max(1, seconds), 10)
}

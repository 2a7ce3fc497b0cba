package s3

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// answer is what a store says when it says no.
type answer struct {
	status  int
	header  http.Header
	code    string
	message string
}

// readAnswer reads the error in resp and closes it.
func readAnswer(resp *http.Response) answer {
	a := answer{status: resp.StatusCode, header: resp.Header}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, wire.MaxErrorBody))
	if err == nil {
		a.code, a.message = parseError(unsaid(body, resp.Request))
	}
	return a
}

// unsaid blanks the credentials of a request in what the store says to it: some
// quote the headers that they were sent.
func unsaid(body []byte, request *http.Request) []byte {
	if request == nil {
		return body
	}
	for _, name := range []string{"Authorization", "X-Amz-Security-Token"} {
		if value := request.Header.Get(name); value != "" {
			body = bytes.ReplaceAll(body, []byte(value), []byte("[redacted]"))
		}
	}
	return body
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
	"NoSuchUpload":                 storage.CodeUploadNotFound,
	"InvalidPart":                  storage.CodeInvalidPart,
	"InvalidPartOrder":             storage.CodeInvalidPart,
	"EntityTooSmall":               storage.CodeInvalidPart,
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
	if a.status == http.StatusNotFound && a.code != "" {
		return storage.CodeRejected // something else is missing, not the key
	}
	return wire.CodeOfStatus(a.status, key != "")
}

// error returns a as an error of op on key, which is empty for the bucket.
func (a answer) error(op, key string) *storage.Error {
	said := a.code
	if a.message != "" {
		said += ": " + a.message
	}
	e := wire.Answered(a.meaning(key), op, key, a.status, a.header, said)
	if e.Code == storage.CodeAccessDenied && a.code == "" {
		e.Message += "; a store says this of a missing key too where listing is not allowed"
	}
	switch a.code {
	case "RequestTimeout", clockSkewed:
		// Sent with 400 and 403, though another try may well succeed.
		e.Status = http.StatusRequestTimeout
	}
	return e
}

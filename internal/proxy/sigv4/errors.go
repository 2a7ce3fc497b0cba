package sigv4

import "fmt"

// Code is S3's code of an error.
type Code string

// Codes of what can be wrong with a signature or a body.
const (
	CodeAccessDenied           Code = "AccessDenied"
	CodeInvalidAccessKeyID     Code = "InvalidAccessKeyId"
	CodeSignatureDoesNotMatch  Code = "SignatureDoesNotMatch"
	CodeRequestTimeTooSkewed   Code = "RequestTimeTooSkewed"
	CodeAuthorizationMalformed Code = "AuthorizationHeaderMalformed"
	CodeAuthorizationQuery     Code = "AuthorizationQueryParametersError"
	CodeInvalidRequest         Code = "InvalidRequest"
	CodeInvalidArgument        Code = "InvalidArgument"
	CodeInvalidURI             Code = "InvalidURI"
	CodeInvalidDigest          Code = "InvalidDigest"
	CodeBadDigest              Code = "BadDigest"
	CodeContentSHA256Mismatch  Code = "XAmzContentSHA256Mismatch"
	CodeIncompleteBody         Code = "IncompleteBody"
	CodeMalformedTrailer       Code = "MalformedTrailerError"
	CodeMissingContentLength   Code = "MissingContentLength"
	CodeNotImplemented         Code = "NotImplemented"
	CodeRequestTimeout         Code = "RequestTimeout"
)

// Error says why a request is refused. Message is meant for the client and
// holds no secret.
type Error struct {
	Code    Code
	Message string
	// Cause is the error below, such as that of a broken connection.
	Cause error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Cause != nil {
		return string(e.Code) + ": " + e.Message + ": " + e.Cause.Error()
	}
	return string(e.Code) + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

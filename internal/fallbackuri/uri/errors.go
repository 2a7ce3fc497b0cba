package uri

import "strings"

// Code says which rule a URI breaks. The strings are those that errors of
// fallback URIs carry everywhere.
type Code string

// The codes of this package; the others of fallback URIs come from using one.
const (
	// CodeNoCandidates: the URI is well-formed and names nothing.
	CodeNoCandidates Code = "FALLBACK_URI.NO_CANDIDATES"
	// CodeInvalidURI: the URI does not follow the grammar or its limits.
	CodeInvalidURI Code = "FALLBACK_URI.INVALID_URI"
)

// Error is every error of this package.
type Error struct {
	Code Code
	// URI is the refused one as Redact shows it.
	URI string
	// Reason is the rule that it breaks. It repeats nothing that may be secret.
	Reason string
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code) + ": " + e.Reason)
	if e.URI != "" {
		b.WriteString(": " + e.URI)
	}
	return b.String()
}

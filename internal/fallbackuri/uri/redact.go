package uri

import (
	"strings"
)

// maxShown bounds how much of a URI is repeated in errors, events and spans.
const maxShown = 256

// hidden stands for what Redact leaves out.
const hidden = "redacted"

// Redact returns a URI for people and machines that may not see credentials:
// without user information, query and fragment, at most 256 characters of it, and
// nothing but printable ASCII. The candidates of a fallback URI are redacted one
// by one.
func Redact(text string) string { return shorten(redact(text, MaxDepth)) }

func redact(text string, depth int) string {
	scheme := SchemeOf(text)
	if scheme == Scheme {
		return redactFallback(text, depth)
	}
	rest, _, _ := strings.Cut(text, "#")
	rest, _, query := strings.Cut(rest, "?")
	out := redactLocation(scheme, rest)
	if query {
		out += "?" + hidden
	}
	return strings.Map(printable, out)
}

// redactFallback redacts what can be told apart; of the rest it shows nothing.
func redactFallback(text string, depth int) string {
	if depth > 0 {
		if u, err := parseToRedact(text); err == nil {
			for i, c := range u.candidates {
				u.candidates[i] = redact(c, depth-1)
			}
			return u.String()
		}
	}
	return Scheme + "://" + hidden
}

// parseToRedact is Parse without errors that would have to be redacted.
func parseToRedact(text string) (URI, error) {
	text, _, _ = strings.Cut(text, "#")
	_, query, _ := strings.Cut(text, "?")
	var u URI
	for pair := range strings.SplitSeq(query, "&") {
		candidate, reason := valueOf(pair)
		if reason != "" || len(u.candidates) == MaxCandidates {
			return URI{}, &Error{Code: CodeInvalidURI}
		}
		u.candidates = append(u.candidates, candidate)
	}
	return u, nil
}

// redactLocation hides the user information of what stands before a query. A
// host that does not look like one may be a part of a password and is hidden as
// well.
func redactLocation(scheme, text string) string {
	if scheme == "" {
		return hidden
	}
	rest := text[len(scheme)+1:]
	if !strings.HasPrefix(rest, "//") {
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			rest = hidden + rest[at:]
		}
		return scheme + ":" + rest
	}
	authority, path := rest[len("//"):], ""
	if end := strings.IndexAny(authority, `/\`); end >= 0 {
		authority, path = authority[:end], authority[end:]
	}
	user := ""
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, authority = hidden+"@", authority[at+1:]
	}
	if !isHost(authority) {
		return scheme + "://" + hidden
	}
	return scheme + "://" + user + authority + path
}

// isHost reports whether authority is a host with, at most, a numeric port.
func isHost(authority string) bool {
	host, port := authority, ""
	if at := strings.LastIndexByte(authority, ':'); at >= 0 && !strings.HasSuffix(authority, "]") {
		host, port = authority[:at], authority[at+1:]
	}
	if strings.HasPrefix(host, "[") {
		host = strings.TrimSuffix(host[1:], "]")
	} else if strings.Contains(host, ":") {
		return false
	}
	for i := range len(port) {
		if !isDigit(port[i]) {
			return false
		}
	}
	return !strings.ContainsAny(host, `%[]\`)
}

func printable(r rune) rune {
	if notInURI(r) {
		return '?'
	}
	return r
}

func shorten(text string) string {
	if len(text) > maxShown {
		return text[:maxShown] + "..."
	}
	return text
}

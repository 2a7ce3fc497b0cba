package uri

import (
	"slices"
	"strings"
)

// SchemeOf returns the scheme of a URI in lower case, or "" if it has none.
func SchemeOf(candidate string) string {
	scheme, _, found := strings.Cut(candidate, ":")
	if !found || scheme == "" || !isLetter(scheme[0]) {
		return ""
	}
	for i := range len(scheme) {
		if c := scheme[i]; !isLetter(c) && !isDigit(c) && c != '+' && c != '-' && c != '.' {
			return ""
		}
	}
	return strings.ToLower(scheme)
}

// IsFallback reports whether a candidate is a fallback URI itself.
func IsFallback(candidate string) bool { return SchemeOf(candidate) == Scheme }

// Canonical returns the form by which a URI is recognised when it comes again:
// the scheme in lower case and no fragment; of a fallback URI also its
// candidates in their own canonical forms and in ascending order, whatever order
// they are tried in. A fallback URI that cannot be read, or that lies deeper
// than MaxDepth, stays as it is.
func Canonical(text string) string { return canonical(text, MaxDepth) }

func canonical(text string, depth int) string {
	text, _, _ = strings.Cut(text, "#")
	scheme := SchemeOf(text)
	if scheme == "" {
		return text
	}
	if scheme == Scheme && depth > 0 {
		if u, err := Parse(text, MaxCandidates); err == nil {
			sorted := make([]string, len(u.candidates))
			for i, c := range u.candidates {
				sorted[i] = canonical(c, depth-1)
			}
			slices.Sort(sorted)
			return write(sorted)
		}
	}
	return scheme + text[len(scheme):]
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

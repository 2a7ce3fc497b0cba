package muxconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// HTTP is a folder of a WebDAV server, or of a web server to read from.
type HTTP struct {
	URL string `json:"url"`
	// Flavor is "WebDAV" or "Plain".
	Flavor string   `json:"flavor"`
	Auth   HTTPAuth `json:"auth"`
	// CABundle is PEM; empty is the system's roots.
	CABundle string `json:"caBundle,omitempty"`
	// Guard is nil where the URL is the author's own choice of a server, and
	// redirects are not followed.
	Guard *Guard `json:"guard,omitempty"`
}

// Values of HTTP.Flavor.
const (
	FlavorWebDAV = "WebDAV"
	FlavorPlain  = "Plain"
)

// HTTPAuth says who the proxy is for an HTTP server: a user with a password, or
// the bearer of a token, and whoever Headers say. All empty is nobody.
type HTTPAuth struct {
	Username string `json:"username,omitempty"`
	Password Secret `json:"password,omitempty"`
	Token    Secret `json:"token,omitempty"`
	// Headers are sent with each request, by name.
	Headers map[string]Secret `json:"headers,omitempty"`
}

// Problem says what is wrong with a, in terms of the keys of its Secret, or "".
func (a HTTPAuth) Problem() string {
	switch {
	case a.Token != "" && (a.Username != "" || a.Password != ""):
		return "must not have both a token and a user's name and password"
	case (a.Username == "") != (a.Password == ""):
		return "must have both of username and password, or neither"
	case strings.Contains(a.Username, ":"):
		return "must have a username without a colon"
	case !isHeaderValue(a.Token.Reveal()):
		return "must have a token of printable ASCII characters, without a line break"
	}
	names := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		value := a.Headers[name]
		folded := strings.ToLower(name)
		switch {
		case !isHeaderName(name):
			return fmt.Sprintf("must have the name of an HTTP header after header., not %q", name)
		case names[folded]:
			return fmt.Sprintf("must have header.%s once, whatever its case", name)
		case slices.Contains(ownHeaders, folded):
			return fmt.Sprintf("must not have header.%s, which each request sets by itself", name)
		case folded == "authorization" && (a.Token != "" || a.Username != ""):
			return "must not have header.Authorization beside a token or a username"
		case value == "" || !isHeaderValue(value.Reveal()):
			return fmt.Sprintf("must have a value of printable ASCII characters, without a line break, under header.%s", name)
		}
		names[folded] = true
	}
	return ""
}

// ownHeaders are those that a request to the store has a meaning for.
var ownHeaders = []string{
	"accept-encoding", "connection", "content-length", "content-type", "depth", "destination", "expect", "host",
	"if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "keep-alive", "overwrite",
	"proxy-connection", "range", "te", "trailer", "transfer-encoding", "upgrade",
}

func isHeaderName(s string) bool {
	for _, c := range s {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", c) {
			return false
		}
	}
	return s != ""
}

func isHeaderValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func validateHTTP(field string, h *HTTP) error {
	switch {
	case h.URL == "":
		return invalid(field+".url", "must not be empty")
	case h.Flavor != FlavorWebDAV && h.Flavor != FlavorPlain:
		return invalid(field+".flavor", "%q must be WebDAV or Plain", h.Flavor)
	}
	if problem := h.Auth.Problem(); problem != "" {
		return invalid(field+".auth", "%s", problem)
	}
	if h.Guard != nil {
		return validateGuard(field+".guard", h.Guard)
	}
	return nil
}

// Format implements fmt.Formatter.
func (h HTTP) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "%s folder %s", h.Flavor, h.URL) }

// Format implements fmt.Formatter.
func (a HTTPAuth) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "auth %s", a.Username) }

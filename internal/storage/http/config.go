package http

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Config says which folder, and as whom.
type Config struct {
	// URL is that of the folder, "https://dav.example.com/assets/".
	URL    string
	Flavor Flavor
	Auth   Auth
	// CABundle holds PEM certificates that are trusted instead of the
	// system's; empty means the system's.
	CABundle []byte
	// Query is sent with each request, as it stands: that of a URL which is
	// signed, for one.
	Query string
	// Guard limits whom the store may be in touch with; nil leaves that to the
	// URL, and follows no redirect.
	Guard *Guard
	// MaxInFlight is how many requests are expected at once; 0 is 512.
	MaxInFlight int
}

// Flavor is what a server can do.
type Flavor string

// Flavors. Plain is read-only: nothing in HTTP itself says when a PUT that was
// cut becomes visible.
const (
	WebDAV Flavor = "WebDAV"
	Plain  Flavor = "Plain"
)

// Auth says as whom requests are made: with a user's name and password, with a
// token, with headers of any name, or, as the zero value, as nobody.
type Auth struct {
	Username, Password string
	Token              string
	Headers            map[string]string
}

func (a Auth) header() http.Header {
	h := http.Header{}
	switch {
	case a.Token != "":
		h.Set("Authorization", "Bearer "+a.Token)
	case a.Username != "" || a.Password != "":
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(a.Username+":"+a.Password)))
	}
	for name, value := range a.Headers {
		h.Set(name, value)
	}
	return h
}

// base returns the folder's URL, its path with a slash at the end.
func (c Config) base() (*url.URL, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, storage.Errorf(storage.CodeRejected, "New", "the URL must be one such as https://dav.example.com/assets/")
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}, nil
}

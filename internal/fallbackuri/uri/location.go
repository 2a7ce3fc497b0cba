package uri

import (
	"fmt"
	"net/url"
	"strings"
)

// The schemes whose candidates name something in the namespace of the resource
// that holds the URI.
const (
	// SchemeBackend is backend://NAME/KEY: a StorageBackend.
	SchemeBackend = "backend"
	// SchemeMux is mux://NAME/KEY: a StorageMux.
	SchemeMux = "mux"
	// SchemeS3 is s3://BUCKET/KEY: the one StorageBackend with that bucket.
	SchemeS3 = "s3"
)

// Location is where a candidate of the form SCHEME://NAME/KEY leads.
type Location struct {
	// Scheme in lower case.
	Scheme string
	// Name is the authority: of a resource, a bucket, or empty.
	Name string
	// Key is the decoded path without its first slash.
	Key string
}

// Locate splits a candidate of the form SCHEME://NAME/KEY. User information, a
// query and a fragment have no meaning there and are refused.
func Locate(candidate string) (Location, error) {
	scheme := SchemeOf(candidate)
	rest, found := "", false
	if scheme != "" {
		rest, found = strings.CutPrefix(candidate[len(scheme):], "://")
	}
	switch {
	case !found:
		return Location{}, invalid(candidate, "it must have the form SCHEME://NAME/KEY")
	case strings.ContainsAny(rest, "?#"):
		return Location{}, invalid(candidate, "it must have neither query nor fragment")
	}
	name, path, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(name, "@:%") {
		return Location{}, invalid(candidate, "what follows %s:// must be a plain name", scheme)
	}
	key, err := url.PathUnescape(path)
	if err != nil {
		return Location{}, invalid(candidate, "a percent sign must be followed by two hexadecimal digits")
	}
	return Location{Scheme: scheme, Name: name, Key: key}, nil
}

// Leaves returns the candidates of u and of the fallback URIs among them, at
// every depth up to maxDepth, in the order of a walk; 0 stands for
// DefaultMaxDepth. What lies deeper, and a nested URI that cannot be read or has
// more than maxCandidates, is an error.
func (u URI) Leaves(maxCandidates, maxDepth int) ([]string, error) {
	if maxDepth == 0 {
		maxDepth = DefaultMaxDepth
	}
	return u.leaves(maxCandidates, maxDepth, maxDepth)
}

func (u URI) leaves(maxCandidates, maxDepth, left int) ([]string, error) {
	if left == 0 {
		return nil, &Error{Code: CodeInvalidURI, URI: Redact(u.String()), Reason: fmt.Sprintf("fallback URIs are nested more than %d deep", maxDepth)}
	}
	var all []string
	for _, c := range u.candidates {
		if !IsFallback(c) {
			all = append(all, c)
			continue
		}
		nested, err := Parse(c, maxCandidates)
		if err != nil {
			return nil, err
		}
		below, err := nested.leaves(maxCandidates, maxDepth, left-1)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

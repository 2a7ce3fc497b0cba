package muxconfig

import (
	"slices"
	"strings"
)

// ModeFallback is the mode of the muxes that stand for fallback backends. No
// StorageMux has it.
const ModeFallback = "fallback"

// Fallback is a ladder of candidates. Those that are no fallback URIs themselves,
// at every depth, are members of the mux that LadderName names. One that is
// missing there is left out of the walk.
type Fallback struct {
	// URI is the fallback URI. Candidates with credentials in them are refused
	// before they could get here.
	URI string `json:"uri"`

	Walk            string `json:"walk"`
	ErrorClass      string `json:"errorClass"`
	NotFoundIsFinal bool   `json:"notFoundIsFinal,omitempty"`
	PassAborts      bool   `json:"passAborts,omitempty"`
	WriteMode       string `json:"writeMode"`
	DeleteMode      string `json:"deleteMode"`
	ListFailureMode string `json:"listFailureMode"`
	MaxCandidates   int32  `json:"maxCandidates"`
	MaxDepth        int32  `json:"maxDepth"`

	// Candidates say which member each candidate is that is no fallback URI
	// itself.
	Candidates []Candidate `json:"candidates"`
}

// Candidate is a candidate and the member of the ladder that it is. Two with
// different bases in one store are the same member.
type Candidate struct {
	URI    string `json:"uri"`
	Member string `json:"member"`
}

// Guard says whom an HTTP backend may be in touch with.
type Guard struct {
	// Hosts are names, or *.DOMAIN for every host below a domain.
	Hosts []string `json:"hosts"`
	// AllowPrivate lets addresses be private or link-local.
	AllowPrivate bool `json:"allowPrivate,omitempty"`
}

// ladderPrefix cannot begin the name of a resource.
const ladderPrefix = "fallback/"

// LadderName is the name, in Document.Muxes, of what stands for the candidates of
// a fallback backend.
func LadderName(backend string) string { return ladderPrefix + backend }

// IsLadder reports whether a mux of the document stands for a fallback backend.
func IsLadder(mux string) bool { return strings.HasPrefix(mux, ladderPrefix) }

// CandidateName is the name, in Document.Backends, of a candidate that is no
// resource by itself, and CandidateUID its UID.
func CandidateName(backend, member string) string { return backend + "/" + member }

// CandidateUID is the UID of a candidate that is no resource by itself.
func CandidateUID(uid, member string) string { return uid + "/" + member }

// IsCandidate reports whether a backend of the document is a candidate that is no
// resource by itself.
func IsCandidate(backend string) bool { return strings.Contains(backend, "/") }

// Member returns the member of that name, or nil.
func (m *Mux) Member(name string) *Member {
	for i := range m.Members {
		if m.Members[i].Name == name {
			return &m.Members[i]
		}
	}
	return nil
}

// Below returns the mux that a member leads into: the one it names, or the one
// that stands for its fallback backend. It is nil for a leaf.
func (d *Document) Below(member *Member) *Mux {
	if member.Mux != "" {
		return d.Mux(member.Mux)
	}
	if b := d.Backend(member.Backend); b != nil && b.Fallback != nil {
		return d.Mux(LadderName(member.Backend))
	}
	return nil
}

func validateFallback(d *Document, field string, b *Backend) error {
	f := b.Fallback
	for _, one := range []struct {
		name, value string
		allowed     []string
	}{
		{"walk", f.Walk, []string{"sequential", "parallel"}},
		{"errorClass", f.ErrorClass, []string{"transient", "any"}},
		{"writeMode", f.WriteMode, []string{"all", "first-success"}},
		{"deleteMode", f.DeleteMode, []string{"any", "all"}},
		{"listFailureMode", f.ListFailureMode, []string{"throw", "partial"}},
	} {
		if !slices.Contains(one.allowed, one.value) {
			return invalid(field+"."+one.name, "%q must be one of %v", one.value, one.allowed)
		}
	}
	ladder := d.Mux(LadderName(b.Name))
	switch {
	case f.URI == "":
		return invalid(field+".uri", "must not be empty")
	case f.MaxCandidates < 1 || f.MaxCandidates > 64:
		return invalid(field+".maxCandidates", "must be 1 to 64")
	case f.MaxDepth < 1 || f.MaxDepth > 8:
		return invalid(field+".maxDepth", "must be 1 to 8")
	case len(f.Candidates) == 0:
		return invalid(field+".candidates", "must not be empty")
	case ladder == nil || ladder.Mode != ModeFallback:
		return invalid(field, "there must be a mux %s of mode %s", LadderName(b.Name), ModeFallback)
	}
	return nil
}

func validateGuard(field string, g *Guard) error {
	if len(g.Hosts) == 0 || slices.Contains(g.Hosts, "") {
		return invalid(field+".hosts", "must name at least one host, and none that is empty")
	}
	return nil
}

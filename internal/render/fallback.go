package render

import (
	"encoding/hex"
	"hash/fnv"
	"maps"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// candidate is one candidate of a fallback backend that is no fallback URI
// itself.
type candidate struct {
	text, scheme string
	// at is set for the schemes that name a resource, or a file.
	at uri.Location
	// link is set for https and http.
	link *url.URL
}

// candidatesOf reads a fallback backend's URI. The verdict says what is wrong
// with it.
func candidatesOf(b *v1alpha1.StorageBackend, standalone bool) ([]candidate, Verdict) {
	policy := b.Spec.Fallback.Policy
	most, depth := int(valueOr(policy.MaxCandidates, uri.DefaultMaxCandidates)), int(valueOr(policy.MaxDepth, uri.DefaultMaxDepth))
	u, err := uri.Parse(b.Spec.Fallback.URI, most)
	var leaves []string
	if err == nil {
		leaves, err = u.Leaves(most, depth)
	}
	if err != nil {
		return nil, refuse(v1alpha1.ReasonInvalidURI, "spec.fallback.uri: %s", err)
	}
	list := make([]candidate, 0, len(leaves))
	for _, text := range leaves {
		c, problem := readCandidate(text, standalone)
		if problem == "" && c.link != nil {
			problem = hostProblem(c.link.Hostname(), policy.AllowedHosts)
		}
		if problem != "" {
			return nil, refuse(v1alpha1.ReasonInvalidURI, "spec.fallback.uri: candidate %s %s", uri.Redact(text), problem)
		}
		list = append(list, c)
	}
	return list, pass
}

func readCandidate(text string, standalone bool) (c candidate, problem string) {
	c = candidate{text: text, scheme: uri.SchemeOf(text)}
	var err error
	switch c.scheme {
	case "https", "http":
		c.link, err = url.Parse(text)
		switch {
		case err != nil || c.link.Host == "":
			return c, "must be a URL with a host"
		case c.link.User != nil || c.link.RawQuery != "" || c.link.ForceQuery || c.link.Fragment != "":
			return c, "must have neither user information nor query nor fragment: keys live under it"
		}
	case uri.SchemeBackend, uri.SchemeMux, uri.SchemeS3:
		if c.at, err = uri.Locate(text); err != nil || c.at.Name == "" {
			return c, "must have the form " + c.scheme + "://NAME/PREFIX, without query and fragment"
		}
	case "file":
		if !standalone {
			return c, "is for storagemux serve; in a cluster a backend of type file must be named as backend://NAME/"
		}
		if c.at, err = uri.Locate(text); err != nil || c.at.Name != "" || c.at.Key == "" {
			return c, "must have the form file:///FOLDER/"
		}
	default:
		return c, "has the scheme " + strings.ToValidUTF8(c.scheme, "?") + ", which is not one of https, http, backend, mux, s3, file and fallback"
	}
	return c, ""
}

// hostProblem says what keeps a host from being contacted, or "". Without a list
// the hosts of the candidates themselves are allowed.
func hostProblem(host string, allowed []string) string {
	if len(allowed) == 0 {
		return ""
	}
	for _, one := range allowed {
		if hostMatches(strings.ToLower(host), strings.ToLower(one)) {
			return ""
		}
	}
	return "names a host that is not one of policy.allowedHosts"
}

func hostMatches(host, pattern string) bool {
	if domain, wild := strings.CutPrefix(pattern, "*."); wild {
		return strings.HasSuffix(host, "."+domain)
	}
	return host == pattern
}

// acceptFallback says whether a fallback backend can be served at all.
func acceptFallback(b *v1alpha1.StorageBackend, standalone bool) Verdict {
	if b.Spec.Fallback.Policy.ListMode == v1alpha1.FallbackListModeConcat {
		return refuse(v1alpha1.ReasonInvalid, "spec.fallback.policy.listMode must be union: a bucket names every key once, in order; concat is for storagemux uri")
	}
	_, v := candidatesOf(b, standalone)
	return v
}

// References names what the candidates of a fallback backend are: the
// StorageBackends and StorageMuxes that backend:// and mux:// name, and the
// buckets of s3://, for each of which one StorageBackend of the namespace stands.
// What is no fallback backend, or not a valid one, has none.
func References(b *v1alpha1.StorageBackend) (backends, muxes, buckets []string) {
	if b.Spec.Fallback == nil {
		return nil, nil, nil
	}
	list, _ := candidatesOf(b, true)
	for _, c := range list {
		switch c.scheme {
		case uri.SchemeBackend:
			backends = append(backends, c.at.Name)
		case uri.SchemeMux:
			muxes = append(muxes, c.at.Name)
		case uri.SchemeS3:
			buckets = append(buckets, c.at.Name)
		}
	}
	return backends, muxes, buckets
}

// candidatesExist says whether all that the candidates of a fallback backend name
// is there. A ladder works without some of them.
func candidatesExist(b *v1alpha1.StorageBackend, f Facts) Verdict {
	members := ladder(f, b).Spec.Backends
	for i := range members {
		kind, name := members[i].Target()
		if kind == v1alpha1.MemberKindStorageMux && f.FindMux(name) == nil || kind != v1alpha1.MemberKindStorageMux && f.FindBackend(name) == nil {
			return refuse(v1alpha1.ReasonBackendNotFound, "spec.fallback.uri: no %s is named %s", kind, name)
		}
	}
	return Verdict{OK: true, Reason: v1alpha1.ReasonResolvedRefs, Message: "every reference is resolved"}
}

// withBucket returns the one StorageBackend with that bucket.
func withBucket(f Facts, bucket string) (string, Verdict) {
	var names []string
	for name, b := range f.Backends {
		if b.Spec.S3 != nil && b.Spec.S3.Bucket == bucket && b.DeletionTimestamp == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return "", refuse(v1alpha1.ReasonBackendNotFound, "spec.fallback.uri: no StorageBackend has the bucket %s", bucket)
	case 1:
		return names[0], pass
	}
	return "", refuse(v1alpha1.ReasonInvalidURI, "spec.fallback.uri: several StorageBackends have the bucket %s (%s); name one as backend://NAME/", bucket, list(names))
}

// member returns the member of the ladder that a candidate is. It keeps its name
// wherever in the URI the candidate stands.
func (c candidate) member(f Facts, b *v1alpha1.StorageBackend) (v1alpha1.Member, Verdict) {
	kind, name := v1alpha1.MemberKindStorageBackend, c.at.Name
	switch c.scheme {
	case uri.SchemeMux:
		kind = v1alpha1.MemberKindStorageMux
	case uri.SchemeS3:
		var v Verdict
		if name, v = withBucket(f, c.at.Name); !v.OK {
			return v1alpha1.Member{}, v
		}
	case uri.SchemeBackend:
	default:
		m := c.inlineMember()
		return v1alpha1.Member{Name: m, Ref: &v1alpha1.MemberReference{Kind: kind, Name: muxconfig.CandidateName(b.Name, m)}}, pass
	}
	prefix := "backend."
	if kind == v1alpha1.MemberKindStorageMux {
		prefix = "mux."
	}
	return v1alpha1.Member{Name: prefix + name, Ref: &v1alpha1.MemberReference{Kind: kind, Name: name}}, pass
}

// inlineMember is the member's name of a candidate that is no resource.
func (c candidate) inlineMember() string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(c.text))
	return c.scheme + "." + hex.EncodeToString(sum.Sum(nil))
}

// ladder returns a fallback backend as the mux of its candidates, so that they
// are held, credentialled and drained as members of a list are.
func ladder(f Facts, b *v1alpha1.StorageBackend) *v1alpha1.StorageMux {
	mux := &v1alpha1.StorageMux{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: muxconfig.LadderName(b.Name), UID: b.UID}}
	mux.Spec.Mode, mux.Spec.Keyspace = v1alpha1.Mode(muxconfig.ModeFallback), v1alpha1.KeyspaceReplicated
	mux.Spec.BackendTimeout = b.Spec.Timeout
	candidates, _ := candidatesOf(b, f.Standalone)
	for _, c := range candidates {
		m, v := c.member(f, b)
		if v.OK && !slices.ContainsFunc(mux.Spec.Backends, func(o v1alpha1.Member) bool { return o.Name == m.Name }) {
			mux.Spec.Backends = append(mux.Spec.Backends, m)
		}
	}
	return mux
}

// withCandidates adds to the facts the candidates that are no resources, as the
// StorageBackends that would say the same.
func withCandidates(f Facts) Facts {
	backends := f.Backends
	for name, b := range f.Backends {
		if b.Spec.Fallback == nil || muxconfig.IsCandidate(name) {
			continue
		}
		candidates, _ := candidatesOf(b, f.Standalone)
		for _, c := range candidates {
			if c.link == nil && c.scheme != "file" {
				continue
			}
			if len(backends) == len(f.Backends) {
				backends = maps.Clone(f.Backends)
			}
			inline := c.inline(b)
			backends[inline.Name] = inline
		}
	}
	f.Backends = backends
	return f
}

func (c candidate) inline(b *v1alpha1.StorageBackend) *v1alpha1.StorageBackend {
	member := c.inlineMember()
	inline := &v1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.Namespace, Name: muxconfig.CandidateName(b.Name, member),
		UID: types.UID(muxconfig.CandidateUID(string(b.UID), member)), Finalizers: []string{v1alpha1.FinalizerDrain},
	}}
	inline.Spec.Timeout, inline.Spec.MaxInFlight = b.Spec.Timeout, b.Spec.MaxInFlight
	if c.link != nil {
		inline.Spec.HTTP = &v1alpha1.HTTPBackend{URL: c.text, Flavor: v1alpha1.HTTPFlavorPlain}
	} else {
		inline.Spec.File = &v1alpha1.FileBackend{Path: "/" + c.at.Key}
	}
	return inline
}

// guardOf is whom the http and https candidates of a fallback backend may be in
// touch with. Outside a cluster there is nothing around that has to be shielded.
func guardOf(b *v1alpha1.StorageBackend, standalone bool) *muxconfig.Guard {
	policy := b.Spec.Fallback.Policy
	guard := &muxconfig.Guard{Hosts: policy.AllowedHosts, AllowPrivate: standalone || valueOr(policy.AllowPrivateAddresses, false)}
	if len(guard.Hosts) == 0 {
		candidates, _ := candidatesOf(b, standalone)
		for _, c := range candidates {
			if c.link != nil {
				guard.Hosts = append(guard.Hosts, c.link.Hostname())
			}
		}
		slices.Sort(guard.Hosts)
		guard.Hosts = slices.Compact(guard.Hosts)
	}
	return guard
}

// wireFallback returns a fallback backend as proxies get it. A candidate whose
// StorageBackend cannot be told refuses it.
func wireFallback(b *v1alpha1.StorageBackend, f Facts) (*muxconfig.Fallback, Verdict) {
	policy := b.Spec.Fallback.Policy
	or := func(value, otherwise string) string {
		if value == "" {
			return otherwise
		}
		return value
	}
	wire := &muxconfig.Fallback{
		URI:             b.Spec.Fallback.URI,
		Walk:            or(string(policy.Walk), string(v1alpha1.FallbackWalkSequential)),
		ErrorClass:      or(string(policy.ErrorClass), string(v1alpha1.FallbackErrorClassTransient)),
		NotFoundIsFinal: !valueOr(policy.NotFoundFallsThrough, true),
		PassAborts:      !valueOr(policy.StopOnAbort, true),
		WriteMode:       or(string(policy.WriteMode), string(v1alpha1.FallbackWriteModeAll)),
		DeleteMode:      or(string(policy.DeleteMode), string(v1alpha1.FallbackDeleteModeAny)),
		ListFailureMode: or(string(policy.ListFailureMode), string(v1alpha1.FallbackListFailureModeThrow)),
		MaxCandidates:   valueOr(policy.MaxCandidates, uri.DefaultMaxCandidates),
		MaxDepth:        valueOr(policy.MaxDepth, uri.DefaultMaxDepth),
	}
	candidates, v := candidatesOf(b, f.Standalone)
	if !v.OK {
		return nil, v
	}
	for _, c := range candidates {
		m, v := c.member(f, b)
		if !v.OK {
			return nil, v
		}
		wire.Candidates = append(wire.Candidates, muxconfig.Candidate{URI: c.text, Member: m.Name})
	}
	return wire, pass
}

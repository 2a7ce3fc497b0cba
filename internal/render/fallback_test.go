package render

import (
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
)

func fallbackBackend(name string, candidates ...string) *v1alpha1.StorageBackend {
	u, err := uri.Build(candidates, uri.MaxCandidates)
	if err != nil {
		panic(err)
	}
	b := &v1alpha1.StorageBackend{}
	b.Name, b.Finalizers = name, []string{v1alpha1.FinalizerDrain}
	b.Spec.Fallback = &v1alpha1.FallbackBackend{URI: u.String()}
	return b
}

func TestFallbackBackendsAreRefusedWithWhatIsWrong(t *testing.T) {
	nested, _ := uri.Build([]string{"gopher://deep/"}, 0)
	for name, tc := range map[string]struct {
		candidates []string
		change     func(*v1alpha1.FallbackBackend)
		standalone bool
		reason     string
		message    string
	}{
		"resources and the web":       {candidates: []string{"backend://a/x", "mux://m", "s3://bucket/", "https://host/x/", "http://host/"}},
		"an unknown scheme":           {candidates: []string{"backend://a", "gopher://x/"}, reason: v1alpha1.ReasonInvalidURI, message: "scheme gopher"},
		"an unknown scheme below":     {candidates: []string{"backend://a", nested.String()}, reason: v1alpha1.ReasonInvalidURI, message: "scheme gopher"},
		"a password":                  {candidates: []string{"https://u:s3cr3t@host/"}, reason: v1alpha1.ReasonInvalidURI, message: "user information"},
		"a signature":                 {candidates: []string{"https://host/?sig=s3cr3t"}, reason: v1alpha1.ReasonInvalidURI, message: "query"},
		"a file in a cluster":         {candidates: []string{"file:///data/"}, reason: v1alpha1.ReasonInvalidURI, message: "storagemux serve"},
		"a file outside":              {candidates: []string{"file:///data/"}, standalone: true},
		"a backend without name":      {candidates: []string{"backend:///x"}, reason: v1alpha1.ReasonInvalidURI, message: "backend://NAME/PREFIX"},
		"a backend with a query":      {candidates: []string{"backend://a/?x"}, reason: v1alpha1.ReasonInvalidURI, message: "without query"},
		"a host that is not allowed":  {candidates: []string{"https://host/"}, change: func(f *v1alpha1.FallbackBackend) { f.Policy.AllowedHosts = []string{"other", "*.host"} }, reason: v1alpha1.ReasonInvalidURI, message: "allowedHosts"},
		"a host below an allowed one": {candidates: []string{"https://a.Host/"}, change: func(f *v1alpha1.FallbackBackend) { f.Policy.AllowedHosts = []string{"*.host"} }},
		"too many candidates":         {candidates: []string{"backend://a", "backend://b"}, change: func(f *v1alpha1.FallbackBackend) { f.Policy.MaxCandidates = new(int32(1)) }, reason: v1alpha1.ReasonInvalidURI, message: "more than 1"},
		"too deep":                    {candidates: []string{nested.String()}, change: func(f *v1alpha1.FallbackBackend) { f.Policy.MaxDepth = new(int32(1)) }, reason: v1alpha1.ReasonInvalidURI, message: "more than 1 deep"},
		"concatenated lists":          {candidates: []string{"backend://a"}, change: func(f *v1alpha1.FallbackBackend) { f.Policy.ListMode = v1alpha1.FallbackListModeConcat }, reason: v1alpha1.ReasonInvalid, message: "policy.listMode"},
	} {
		t.Run(name, func(t *testing.T) {
			b := fallbackBackend("ladder", tc.candidates...)
			if tc.change != nil {
				tc.change(b.Spec.Fallback)
			}
			v := AcceptBackend(b, tc.standalone)
			if v.OK != (tc.reason == "") || !v.OK && (v.Reason != tc.reason || !strings.Contains(v.Message, tc.message)) || strings.Contains(v.Message, "s3cr3t") {
				t.Fatalf("got %+v", v)
			}
		})
	}
}

func TestBucketsOfCandidatesNeedOneStorageBackend(t *testing.T) {
	ladder := fallbackBackend("ladder", "s3://objects/x")
	withBuckets := func(buckets ...string) Facts {
		f := Facts{Backends: map[string]*v1alpha1.StorageBackend{"ladder": ladder}}
		for i, bucket := range buckets {
			b := &v1alpha1.StorageBackend{}
			b.Name = string(rune('a' + i))
			b.Spec.S3 = &v1alpha1.S3Backend{Bucket: bucket}
			f.Backends[b.Name] = b
		}
		return f
	}
	for message, f := range map[string]Facts{
		"no StorageBackend has the bucket objects":                withBuckets("other"),
		"several StorageBackends have the bucket objects (a, c);": withBuckets("objects", "other", "objects"),
	} {
		if v := ResolveBackend(ladder, f); v.OK || !strings.Contains(v.Message, message) {
			t.Errorf("got %+v", v)
		}
	}
	if v := ResolveBackend(ladder, withBuckets("other", "objects")); !v.OK {
		t.Errorf("got %+v", v)
	}
}

func TestMissingCandidatesAreNamed(t *testing.T) {
	for candidate, message := range map[string]string{
		"backend://gone": "no StorageBackend is named gone", "mux://gone": "no StorageMux is named gone",
	} {
		if v := ResolveBackend(fallbackBackend("ladder", candidate), Facts{}); v.OK || !strings.Contains(v.Message, message) {
			t.Errorf("got %+v", v)
		}
	}
}

func TestCyclesThroughFallbackBackendsAreFound(t *testing.T) {
	for name, backends := range map[string][]*v1alpha1.StorageBackend{
		"back to the mux":    {fallbackBackend("ladder", "mux://assets")},
		"back to the ladder": {fallbackBackend("ladder", "backend://second"), fallbackBackend("second", "backend://ladder")},
	} {
		f := Facts{Mux: &v1alpha1.StorageMux{}, Backends: map[string]*v1alpha1.StorageBackend{}}
		f.Mux.Name = "assets"
		f.Mux.Spec.Backends = []v1alpha1.Member{{Name: "ladder"}}
		for _, b := range backends {
			f.Backends[b.Name] = b
		}
		if v := AcceptMux(f); v.OK || v.Reason != v1alpha1.ReasonCycle {
			t.Errorf("%s: got %+v", name, v)
		}
	}
}

package status

import (
	"slices"
	"testing"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// fromAbove is a proxy of a mux that has ours at these places, with the members
// a and b in the given states.
func fromAbove(pod string, a, b muxconfig.MemberState, places ...string) Proxy {
	p := proxy(pod, 7)
	for _, place := range places {
		nested := muxconfig.MemberReport{Path: place, Mux: "assets", UID: "mux-uid", State: a, Totals: &muxconfig.Totals{Calls: 5}}
		one, two := member("a", a), member("b", b)
		one.Path, two.Path = place+"/a", place+"/b"
		one.Hits = 1
		p.Report.Members = append(p.Report.Members, nested, one, two)
	}
	return p
}

func TestANestedMuxCountsTheProxiesOfItsParents(t *testing.T) {
	up, down := muxconfig.StateUp, muxconfig.StateDown
	silent := change(fromAbove("s1", up, up, "x"), func(p *Proxy) { p.Stale = true })
	other := proxy("o1", 7, member("a", down))
	bare := testMux()
	bare.Spec.Proxy.Type = v1alpha1.ProxyTypeNone
	for name, c := range map[string]struct {
		mux      *v1alpha1.StorageMux
		own      []Proxy
		above    []Proxy
		counts   v1alpha1.StateCounts // of member a
		hits     int64
		calls    int64
		want     wants
		replicas int32
	}{
		"its own proxy and a parent's": {
			own: []Proxy{allUp("p1")}, above: []Proxy{fromAbove("q1", down, up, "x")},
			counts: v1alpha1.StateCounts{Up: 1, Down: 1}, hits: 1, calls: 5, replicas: 1,
			want: wants{"BackendsHealthy": "False/SomeDown", "Programmed": "True/Programmed", "Ready": "True/Serving"},
		},
		"a parent that has it twice is one proxy and two places": {
			own: []Proxy{allUp("p1")}, above: []Proxy{fromAbove("q1", up, up, "x", "deep/y")},
			counts: v1alpha1.StateCounts{Up: 2}, hits: 2, calls: 10, replicas: 1,
			want: wants{"BackendsHealthy": "True/AllUp"},
		},
		"a parent's proxy that is silent is unknown, and one without it does not count": {
			own: []Proxy{allUp("p1")}, above: []Proxy{silent, other},
			counts: v1alpha1.StateCounts{Up: 1, Unknown: 1}, replicas: 1,
			want: wants{"BackendsHealthy": "True/AllUp"},
		},
		"no proxies of its own": {
			mux: bare, above: []Proxy{fromAbove("q1", up, up, "x"), fromAbove("r1", up, down, "y")},
			counts: v1alpha1.StateCounts{Up: 2}, hits: 2, calls: 10,
			want: wants{"BackendsHealthy": "False/SomeDown", "Programmed": "True/NoWorkload", "Ready": "True/NoWorkload", "Reconciling": ""},
		},
		"no proxies of its own, and no parent": {
			mux:  bare,
			want: wants{"BackendsHealthy": "Unknown/NoReport", "Programmed": "True/NoWorkload", "Ready": "True/NoWorkload"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := MuxFacts{Mux: c.mux, Accepted: accepted, ResolvedRefs: resolved, Proxies: c.own, Above: c.above, Now: at}
			if facts.Mux == nil {
				facts.Mux, facts.Stored = testMux(), testDocument()
			} else {
				facts.Shape = testDocument()
			}
			status := Mux(facts)
			check(t, status.Conditions, c.want)
			a := status.Members[slices.IndexFunc(status.Members, func(m v1alpha1.MemberStatus) bool { return m.Path == "a" })]
			if a.Replicas != c.counts || a.Hits != c.hits {
				t.Errorf("a is counted %+v with %d hits, want %+v with %d", a.Replicas, a.Hits, c.counts, c.hits)
			}
			var calls int64
			if status.Totals != nil {
				calls = status.Totals.Calls
			}
			if calls != c.calls || status.Replicas != c.replicas {
				t.Errorf("%d calls and %d replicas, want %d and %d", calls, status.Replicas, c.calls, c.replicas)
			}
		})
	}
}

func TestAMuxWithoutProxiesShowsWhatItsParentsStillDrain(t *testing.T) {
	mux := testMux()
	mux.Spec.Proxy.Type = v1alpha1.ProxyTypeNone
	shape := testDocument()
	shape.Muxes[0].Members = shape.Muxes[0].Members[1:]
	status := Mux(MuxFacts{Mux: mux, Accepted: accepted, ResolvedRefs: resolved, Shape: shape, Now: at,
		Above: []Proxy{fromAbove("q1", muxconfig.StateDraining, muxconfig.StateUp, "x")}})
	if len(status.Members) != 2 || status.Members[1].Path != "a" || status.Members[1].State != v1alpha1.MemberStateDraining || status.Members[1].Name != "a" {
		t.Errorf("members are %+v", status.Members)
	}
}

func TestWhatKeepsPodsFromRunningIsNamedWhileNoneServes(t *testing.T) {
	broken := func(pod string) Proxy {
		return Proxy{Proxy: render.Proxy{Pod: pod}, Trouble: &render.Verdict{Reason: v1alpha1.ReasonImagePullFailed, Message: "pod " + pod}}
	}
	tooOld := &render.Verdict{Reason: v1alpha1.ReasonProxyTooOld, Message: "the type of backend web"}
	notMade := &render.Verdict{Reason: v1alpha1.ReasonPodsNotCreated, Message: "quota"}
	for name, c := range map[string]struct {
		facts MuxFacts
		want  wants
	}{
		"none serves": {MuxFacts{Proxies: []Proxy{broken("p2"), broken("p1")}},
			wants{"Programmed": "False/ImagePullFailed", "Ready": "False/ImagePullFailed", "Reconciling": "True/Progressing", "Stalled": ""}},
		"one serves": {MuxFacts{Proxies: []Proxy{broken("p2"), allUp("p1")}},
			wants{"Programmed": "True/Programmed", "Ready": "True/Serving", "Reconciling": ""}},
		"there is none": {MuxFacts{Trouble: notMade},
			wants{"Programmed": "False/PodsNotCreated", "Ready": "False/PodsNotCreated", "Reconciling": "True/Progressing"}},
		"they are too old": {MuxFacts{TooOld: tooOld, Proxies: []Proxy{allUp("p1")}},
			wants{"Programmed": "False/ProxyTooOld", "Ready": "True/Serving", "Reconciling": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Mux, c.facts.Accepted, c.facts.ResolvedRefs, c.facts.Stored, c.facts.Now = testMux(), accepted, resolved, testDocument(), at
			check(t, Mux(c.facts).Conditions, c.want)
		})
	}
}

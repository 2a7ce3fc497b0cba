package status

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

var at = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

var (
	accepted = render.Verdict{OK: true, Reason: v1alpha1.ReasonAccepted, Message: "the spec is valid"}
	resolved = render.Verdict{OK: true, Reason: v1alpha1.ReasonResolvedRefs, Message: "every reference is resolved"}
	refused  = render.Verdict{Reason: v1alpha1.ReasonCycle, Message: "a StorageMux must not contain itself: assets -> assets"}
	missing  = render.Verdict{Reason: v1alpha1.ReasonSecretNotFound, Message: "no Secret is named x"}
)

func testMux() *v1alpha1.StorageMux {
	return &v1alpha1.StorageMux{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "assets", UID: "mux-uid", Generation: 3},
		Spec:       v1alpha1.StorageMuxSpec{Mode: v1alpha1.ModeFailover, Keyspace: v1alpha1.KeyspaceReplicated},
	}
}

// testDocument has the members a and b.
func testDocument() *muxconfig.Document {
	return &muxconfig.Document{
		Schema: 1, Revision: 7, Hash: "h7", Root: "assets",
		Muxes:    []muxconfig.Mux{{Name: "assets", UID: "mux-uid", Members: []muxconfig.Member{{Name: "a", Backend: "a"}, {Name: "b", Backend: "b"}}}},
		Backends: []muxconfig.Backend{{Name: "a", UID: "uid-a"}, {Name: "b", UID: "uid-b"}},
	}
}

func member(path string, state muxconfig.MemberState) muxconfig.MemberReport {
	return muxconfig.MemberReport{Path: path, Backend: path, UID: "uid-" + path, State: state}
}

// proxy serves revision and says this of the members.
func proxy(pod string, revision int64, members ...muxconfig.MemberReport) Proxy {
	hash := map[int64]string{6: "h6", 7: "h7"}[revision]
	return Proxy{Proxy: render.Proxy{Pod: pod, Running: true, Ready: true, Report: &muxconfig.Report{
		BootID: pod, MinSchema: 1, MaxSchema: 1,
		Applied: &muxconfig.Applied{Revision: revision, Hash: hash}, Members: members,
	}}}
}

func allUp(pod string) Proxy {
	return proxy(pod, 7, member("a", muxconfig.StateUp), member("b", muxconfig.StateUp))
}

func change(p Proxy, edit func(*Proxy)) Proxy {
	edit(&p)
	return p
}

// wants maps a condition to "Status/Reason", or to "" if it must not be there.
type wants map[string]string

func check(t *testing.T, conditions []metav1.Condition, want wants) {
	t.Helper()
	for kind, text := range want {
		got := ""
		if c := meta.FindStatusCondition(conditions, kind); c != nil {
			got = string(c.Status) + "/" + c.Reason
			if c.Message == "" {
				t.Errorf("%s has no message", kind)
			}
		}
		if got != text {
			t.Errorf("%s is %q, want %q", kind, got, text)
		}
	}
}

func TestConditionsOfAMuxFollowFromWhatItsProxiesSay(t *testing.T) {
	conflict := &render.Verdict{Reason: v1alpha1.ReasonChildConflict, Message: "Service x"}
	for name, c := range map[string]struct {
		facts MuxFacts
		want  wants
	}{
		"all is well": {
			MuxFacts{Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{allUp("p1"), allUp("p2")}},
			wants{"Accepted": "True/Accepted", "ResolvedRefs": "True/ResolvedRefs", "Programmed": "True/Programmed",
				"BackendsHealthy": "True/AllUp", "Ready": "True/Serving", "Reconciling": "", "Stalled": ""},
		},
		"one proxy lags behind": {
			MuxFacts{Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{allUp("p1"), proxy("p2", 6)}},
			wants{"Programmed": "False/Pending", "Ready": "True/Serving", "Reconciling": "True/Progressing"},
		},
		"a proxy that lags behind does not count while it is not ready": {
			MuxFacts{Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{
				allUp("p1"), change(proxy("p2", 6), func(p *Proxy) { p.Ready = false })}},
			wants{"Programmed": "True/Programmed", "Reconciling": ""},
		},
		"a proxy that lags behind does not count while it ends": {
			MuxFacts{Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{
				allUp("p1"), change(proxy("p2", 6, member("a", muxconfig.StateDown)), func(p *Proxy) { p.Terminating = true })}},
			wants{"Programmed": "True/Programmed", "BackendsHealthy": "True/AllUp"},
		},
		"a proxy refuses the document": {
			MuxFacts{Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{
				allUp("p1"), change(proxy("p2", 6), func(p *Proxy) {
					p.Report.Rejection = &muxconfig.Rejection{Revision: 7, Message: "no such field"}
				})}},
			wants{"Programmed": "False/Rejected", "Ready": "True/Serving", "Reconciling": ""},
		},
		"a proxy is too old": {
			MuxFacts{Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{
				change(proxy("p1", 6), func(p *Proxy) { p.Report.MaxSchema = 0 })}},
			wants{"Programmed": "False/ProxyTooOld"},
		},
		"no pod yet": {
			MuxFacts{Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument()},
			wants{"Programmed": "False/Pending", "Ready": "False/NoProxyServing", "BackendsHealthy": "Unknown/NoReport", "Reconciling": "True/Progressing"},
		},
		"scaled to zero": {
			MuxFacts{Mux: &v1alpha1.StorageMux{Spec: v1alpha1.StorageMuxSpec{Proxy: v1alpha1.ProxySpec{Replicas: ptr.To[int32](0)}}},
				Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument()},
			wants{"Programmed": "False/ScaledToZero", "Ready": "False/ScaledToZero", "Reconciling": ""},
		},
		"every proxy is silent for too long": {
			MuxFacts{Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{
				change(allUp("p1"), func(p *Proxy) { p.Stale = true })}},
			wants{"Programmed": "Unknown/NoReport", "Ready": "Unknown/NoReport", "BackendsHealthy": "Unknown/NoReport", "Reconciling": ""},
		},
		"the spec is refused while proxies serve the last good one": {
			MuxFacts{Accepted: refused, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{allUp("p1")}},
			wants{"Accepted": "False/Cycle", "Programmed": "False/NotAccepted", "Ready": "True/Serving",
				"Stalled": "True/Cycle", "Reconciling": ""},
		},
		"the spec is refused from the start": {
			MuxFacts{Accepted: refused, ResolvedRefs: resolved},
			wants{"Programmed": "False/NotAccepted", "Ready": "False/NotAccepted", "Stalled": "True/Cycle"},
		},
		"nothing can be served for want of references": {
			MuxFacts{Accepted: accepted, ResolvedRefs: missing},
			wants{"ResolvedRefs": "False/SecretNotFound", "Programmed": "False/RefsNotResolved", "Ready": "False/RefsNotResolved", "Stalled": "", "Reconciling": ""},
		},
		"a reference is missing and the rest is served": {
			MuxFacts{Accepted: accepted, ResolvedRefs: missing, Stored: testDocument(), Proxies: []Proxy{allUp("p1")}},
			wants{"ResolvedRefs": "False/SecretNotFound", "Programmed": "True/Programmed", "Ready": "True/Serving", "Stalled": ""},
		},
		"somebody else has the name of a child": {
			MuxFacts{Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Children: conflict},
			wants{"Programmed": "False/ChildConflict", "Ready": "False/ChildConflict", "Stalled": "True/ChildConflict"},
		},
		"paused": {
			MuxFacts{Accepted: refused, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{allUp("p1")}, Paused: true},
			wants{"Reconciling": "True/Paused", "Stalled": ""},
		},
		"one member is down in one of two proxies": {
			MuxFacts{Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{
				allUp("p1"), proxy("p2", 7, member("a", muxconfig.StateDown), member("b", muxconfig.StateUp))}},
			wants{"BackendsHealthy": "False/SomeDown", "Programmed": "True/Programmed", "Ready": "True/Serving"},
		},
		"every member is down": {
			MuxFacts{Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{
				proxy("p1", 7, member("a", muxconfig.StateDown), member("b", muxconfig.StateDown))}},
			wants{"BackendsHealthy": "False/AllDown", "Ready": "True/Serving"},
		},
		"a member drains": {
			MuxFacts{Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{
				proxy("p1", 7, member("a", muxconfig.StateDraining), member("b", muxconfig.StateUp))}},
			wants{"BackendsHealthy": "False/SomeDown"},
		},
		"proxy type None": {
			MuxFacts{Mux: &v1alpha1.StorageMux{Spec: v1alpha1.StorageMuxSpec{Proxy: v1alpha1.ProxySpec{Type: v1alpha1.ProxyTypeNone}}},
				Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument()},
			wants{"Programmed": "True/NoWorkload", "Ready": "True/NoWorkload", "BackendsHealthy": "Unknown/NoReport"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.facts.Mux == nil {
				c.facts.Mux = testMux()
			}
			c.facts.Now = at
			status := Mux(c.facts)
			check(t, status.Conditions, c.want)
			for _, kind := range []string{"Accepted", "ResolvedRefs", "Programmed", "BackendsHealthy", "Ready"} {
				if condition := meta.FindStatusCondition(status.Conditions, kind); condition == nil || condition.ObservedGeneration != c.facts.Mux.Generation {
					t.Errorf("%s must be there for generation %d, is %+v", kind, c.facts.Mux.Generation, condition)
				}
			}
			// The same facts a second later must change nothing.
			again := c.facts
			again.Mux = c.facts.Mux.DeepCopy()
			again.Mux.Status, again.Now = status, at.Add(time.Second)
			next := Mux(again)
			if d := CompareMux(&status, &next); d != Same {
				t.Errorf("a second pass over the same facts is a difference of %d", d)
			}
		})
	}
}

func TestANewLeaderKeepsWhatTheStatusSaysUntilItHasHeardOfTheProxies(t *testing.T) {
	mux := testMux()
	before := Mux(MuxFacts{Mux: mux, Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{allUp("p1"), allUp("p2")}, Now: at})
	mux.Status = before
	unheard := func(pod string, tried bool) Proxy {
		return Proxy{Proxy: render.Proxy{Pod: pod, Running: true, Ready: true}, Unheard: true, Tried: tried}
	}
	after := func(proxies ...Proxy) v1alpha1.StorageMuxStatus {
		return Mux(MuxFacts{Mux: mux, Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: proxies, Now: at.Add(time.Minute)})
	}
	for name, proxies := range map[string][]Proxy{
		"none has been asked":                 {unheard("p1", false), unheard("p2", false)},
		"one has answered":                    {allUp("p1"), unheard("p2", false)},
		"none answers, within the grace time": {unheard("p1", true), unheard("p2", true)},
	} {
		if next := after(proxies...); CompareMux(&before, &next) != Same {
			t.Errorf("%s: the status changed to %+v", name, next)
		}
	}
	next := after(allUp("p1"), unheard("p2", true))
	check(t, next.Conditions, wants{"Programmed": "False/Pending", "Ready": "True/Serving"})
	lost := change(unheard("p1", true), func(p *Proxy) { p.Unheard, p.Stale = false, true })
	check(t, after(lost).Conditions, wants{"Programmed": "Unknown/NoReport"})
}

func TestMembersAddUpWhatLiveReplicasReport(t *testing.T) {
	report := func(state muxconfig.MemberState, hits, latency int64, failures int32, changed time.Time, code string) muxconfig.MemberReport {
		m := member("a", state)
		m.Hits, m.Errors, m.P99Latency, m.ConsecutiveFailures, m.LastTransitionTime = hits, 1, latency, failures, changed
		if code != "" {
			m.LastError = &muxconfig.MemberError{Code: code, Message: "from " + code}
		}
		return m
	}
	silent := change(proxy("p3", 7, report(muxconfig.StateUp, 1000, 1, 0, at, "")), func(p *Proxy) { p.Stale = true })
	leaving := change(proxy("p4", 7, report(muxconfig.StateDown, 1000, 1, 0, at, "")), func(p *Proxy) { p.Terminating = true })
	status := Mux(MuxFacts{Mux: testMux(), Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Now: at, Proxies: []Proxy{
		proxy("p1", 7, report(muxconfig.StateUp, 10, 500, 0, at.Add(-time.Minute), "OLD")),
		proxy("p2", 7, report(muxconfig.StateDown, 5, 900, 4, at, "NEW")),
		silent, leaving,
	}})
	got := status.Members[0]
	changed := metav1.NewTime(at)
	want := v1alpha1.MemberStatus{Path: "a", Kind: v1alpha1.MemberKindStorageBackend, Name: "a", Observation: v1alpha1.Observation{
		State: v1alpha1.MemberStateDown, Replicas: v1alpha1.StateCounts{Up: 1, Down: 1, Unknown: 1},
		Hits: 15, Errors: 2, LatencyMicroseconds: v1alpha1.LatencyStatus{P99: 900}, ConsecutiveFailures: 4,
		LastTransitionTime: &changed, LastError: &v1alpha1.ErrorStatus{Code: "NEW", Message: "from NEW"},
	}}
	if got.Observation.LastTransitionTime == nil || !got.LastTransitionTime.Equal(&changed) {
		t.Errorf("last transition %v, want %v", got.LastTransitionTime, changed)
	}
	got.LastTransitionTime = want.LastTransitionTime
	if *got.LastError != *want.LastError {
		t.Errorf("last error %+v, want %+v", got.LastError, want.LastError)
	}
	got.LastError = want.LastError
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if status.Replicas != 3 || status.ProgrammedReplicas != 2 || status.BackendsUp != "0/2" {
		t.Errorf("replicas %d, programmed %d, up %s", status.Replicas, status.ProgrammedReplicas, status.BackendsUp)
	}
	if status.StatsTime == nil {
		t.Error("figures moved, but statsTime is not set")
	}
}

func TestDifferencesAreToldApartSoThatFiguresCanWait(t *testing.T) {
	base := Mux(MuxFacts{Mux: testMux(), Accepted: accepted, ResolvedRefs: resolved, Stored: testDocument(), Proxies: []Proxy{allUp("p1")}, Now: at})
	for name, c := range map[string]struct {
		edit func(*v1alpha1.StorageMuxStatus)
		want Difference
	}{
		"nothing":              {func(*v1alpha1.StorageMuxStatus) {}, Same},
		"failures in a row":    {func(s *v1alpha1.StorageMuxStatus) { s.Members[0].ConsecutiveFailures = 9 }, Same},
		"an error":             {func(s *v1alpha1.StorageMuxStatus) { s.Members[0].LastError = &v1alpha1.ErrorStatus{Code: "X"} }, Same},
		"hits":                 {func(s *v1alpha1.StorageMuxStatus) { s.Members[0].Hits++ }, Figures},
		"calls":                {func(s *v1alpha1.StorageMuxStatus) { s.Totals = &v1alpha1.MuxTotals{Calls: 1} }, Figures},
		"a state":              {func(s *v1alpha1.StorageMuxStatus) { s.Members[0].State = v1alpha1.MemberStateDown }, State},
		"a state and hits":     {func(s *v1alpha1.StorageMuxStatus) { s.Members[0].Replicas.Down, s.Members[0].Hits = 1, 5 }, State},
		"a condition's reason": {func(s *v1alpha1.StorageMuxStatus) { s.Conditions[0].Reason = "Other" }, State},
		"a member less":        {func(s *v1alpha1.StorageMuxStatus) { s.Members = s.Members[:1] }, State},
	} {
		after := base.DeepCopy()
		c.edit(after)
		if got := CompareMux(&base, after); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

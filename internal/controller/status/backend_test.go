package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

func testBackend() *v1alpha1.StorageBackend {
	return &v1alpha1.StorageBackend{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-a", Generation: 2},
		Spec:       v1alpha1.StorageBackendSpec{Memory: &v1alpha1.MemoryBackend{}},
	}
}

func failing(code string) muxconfig.MemberReport {
	m := member("a", muxconfig.StateDown)
	m.LastError = &muxconfig.MemberError{Code: code, Message: "request 4711 failed"}
	return m
}

func TestConditionsOfABackendFollowFromWhatProxiesSay(t *testing.T) {
	used := []string{"assets"}
	withRefused := member("a", muxconfig.StateUp)
	withRefused.Refused = &muxconfig.MemberError{Code: "STORAGE.ACCESS_DENIED", Message: "no"}
	for name, c := range map[string]struct {
		facts BackendFacts
		want  wants
	}{
		"not used": {
			BackendFacts{},
			wants{"Reachable": "Unknown/NotUsed", "Ready": "True/NotUsed", "Draining": "", "Stalled": ""},
		},
		"not used and not accepted": {
			BackendFacts{Accepted: refused},
			wants{"Ready": "False/NotAccepted", "Stalled": "True/Cycle"},
		},
		"not used, its Secret missing": {
			BackendFacts{ResolvedRefs: missing},
			wants{"ResolvedRefs": "False/SecretNotFound", "Ready": "False/RefsNotResolved", "Stalled": ""},
		},
		"up everywhere": {
			BackendFacts{UsedBy: used, Proxies: []Proxy{allUp("p1"), allUp("p2")}},
			wants{"Reachable": "True/Reachable", "Ready": "True/Serving"},
		},
		"down in one proxy": {
			BackendFacts{UsedBy: used, Proxies: []Proxy{allUp("p1"), proxy("p2", 7, failing("STORAGE.UNAVAILABLE"))}},
			wants{"Reachable": "False/Unreachable", "Ready": "True/Serving"},
		},
		"down everywhere, credentials refused": {
			BackendFacts{UsedBy: used, Proxies: []Proxy{proxy("p1", 7, failing("STORAGE.ACCESS_DENIED"))}},
			wants{"Reachable": "False/BadCredentials", "Ready": "False/BadCredentials"},
		},
		"down everywhere, no such bucket": {
			BackendFacts{UsedBy: used, Proxies: []Proxy{proxy("p1", 7, failing("STORAGE.BUCKET_NOT_FOUND"))}},
			wants{"Reachable": "False/BucketNotFound"},
		},
		"new credentials refused while the old ones serve": {
			BackendFacts{UsedBy: used, Proxies: []Proxy{proxy("p1", 7, withRefused)}},
			wants{"Reachable": "False/BadCredentials", "Ready": "True/Serving"},
		},
		"no proxy has told": {
			BackendFacts{UsedBy: used, Proxies: []Proxy{change(allUp("p1"), func(p *Proxy) { p.Stale = true })}},
			wants{"Reachable": "Unknown/NoReport", "Ready": "Unknown/NoReport"},
		},
		"draining": {
			BackendFacts{UsedBy: used, Drain: &Drain{Message: "waiting"}, Proxies: []Proxy{proxy("p1", 7, member("a", muxconfig.StateDraining))}},
			wants{"Draining": "True/InProgress", "Reachable": "True/Reachable", "Ready": "True/Serving"},
		},
		"draining and blocked": {
			BackendFacts{UsedBy: used, Drain: &Drain{Blocked: true, Message: "the last one"}, Proxies: []Proxy{allUp("p1")}},
			wants{"Draining": "True/Blocked"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.Backend, c.facts.Now = testBackend(), at
			if c.facts.Accepted.Reason == "" {
				c.facts.Accepted = accepted
			}
			if c.facts.ResolvedRefs.Reason == "" {
				c.facts.ResolvedRefs = resolved
			}
			status := Backend(c.facts)
			check(t, status.Conditions, c.want)
			for _, condition := range status.Conditions {
				if strings.Contains(condition.Message, "4711") {
					t.Errorf("the message of %s would change with every error: %s", condition.Type, condition.Message)
				}
			}
			again := c.facts
			again.Backend = testBackend()
			again.Backend.Status, again.Now = status, at.Add(time.Second)
			next := Backend(again)
			if d := CompareBackend(&status, &next); d != Same {
				t.Errorf("a second pass over the same facts is a difference of %d", d)
			}
		})
	}
}

func TestABackendCountsEachProxyOnceByTheWorstOfItsPaths(t *testing.T) {
	nested := member("a", muxconfig.StateDown)
	nested.Path = "deep/a"
	status := Backend(BackendFacts{
		Backend: testBackend(), Accepted: accepted, ResolvedRefs: resolved, UsedBy: []string{"assets"}, Now: at,
		Proxies: []Proxy{proxy("p1", 7, member("a", muxconfig.StateUp), nested), allUp("p2"), proxy("p3", 6)},
	})
	if want := (v1alpha1.StateCounts{Up: 1, Down: 1, Unknown: 1}); status.Replicas != want {
		t.Errorf("counts %+v, want %+v", status.Replicas, want)
	}
}

func TestListsOfAStatusAreSortedAndBounded(t *testing.T) {
	facts := BackendFacts{Backend: testBackend(), Accepted: accepted, ResolvedRefs: resolved, Now: at, Drain: &Drain{
		Message: "m", StartedAt: at, Deadline: at.Add(time.Minute),
	}}
	for i := range 40 {
		facts.UsedBy = append(facts.UsedBy, fmt.Sprintf("mux-%02d", 39-i))
		facts.Drain.WaitingFor = append(facts.Drain.WaitingFor, fmt.Sprintf("pod/p-%02d", i), fmt.Sprintf("pod/p-%02d", i))
	}
	status := Backend(facts)
	if status.UsedByCount != 40 || len(status.UsedBy) != v1alpha1.MaxStatusUsedBy || status.UsedBy[0].Name != "mux-00" {
		t.Errorf("used by %d, listed %d, first %s", status.UsedByCount, len(status.UsedBy), status.UsedBy[0].Name)
	}
	if w := status.Drain.WaitingFor; len(w) != v1alpha1.MaxStatusWaitingFor || w[0] != "pod/p-00" || w[1] != "pod/p-01" {
		t.Errorf("waiting for %v", w)
	}
}

func TestTheStartOfADrainStaysWhenDrainTimeoutChanges(t *testing.T) {
	facts := BackendFacts{Backend: testBackend(), Accepted: accepted, ResolvedRefs: resolved, Now: at,
		Drain: &Drain{Message: "m", StartedAt: at, Deadline: at.Add(time.Minute)}}
	facts.Backend.Status = Backend(facts)
	facts.Drain = &Drain{Message: "m", StartedAt: at.Add(-time.Hour), Deadline: at.Add(time.Minute)}
	if started := Backend(facts).Drain.StartedAt; !started.Time.Equal(at) {
		t.Errorf("started at %s, want %s", started, at)
	}
}

func TestTextIsCutToWhatTheAPIServerTakes(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{{"short", 5, "short"}, {"äöüäöü", 4, "äöü…"}, {"a\xffb", 5, "a?b"}} {
		if got := cut(c.text, c.limit); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

func TestCapabilitiesAreTheWeakestOfAll(t *testing.T) {
	strong := muxconfig.MemberReport{Capabilities: []string{muxconfig.CapabilityRange, muxconfig.CapabilityMetadata, muxconfig.CapabilityIdentityNative}}
	weak := muxconfig.MemberReport{Capabilities: []string{muxconfig.CapabilityRange, muxconfig.CapabilityIdentityStored}}
	got := capabilities([]*muxconfig.MemberReport{&strong, {}, &weak})
	if want := (v1alpha1.Capabilities{Range: true, Identity: v1alpha1.IdentityStored}); got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := capabilities([]*muxconfig.MemberReport{{}}); got != nil {
		t.Errorf("nothing was reported, got %+v", got)
	}
}

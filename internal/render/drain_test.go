package render

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
)

var drainNow = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// drainCase builds the rules for a mux with members a, b and c, of which some
// leave.
type drainCase struct {
	mode, keyspace string
	members        []string
	// phases and deadlines of members in the stored document.
	phases   map[string]muxconfig.DrainPhase
	deadline time.Time
	leaving  []string
	forced   []string
	moved    []string
	proxies  []Proxy
}

func (c drainCase) rules() drainRules {
	mux := muxconfig.Mux{Name: "m", Mode: c.mode, Keyspace: c.keyspace}
	for _, name := range c.members {
		member := muxconfig.Member{Name: name, Backend: name}
		if phase := c.phases[name]; phase != "" {
			member.Drain = &muxconfig.Drain{Phase: phase}
			if phase == muxconfig.DrainGranted {
				deadline := c.deadline
				member.Drain.Deadline = &deadline
			}
		}
		mux.Members = append(mux.Members, member)
	}
	doc := &muxconfig.Document{Revision: 7, Hash: "h", Root: "m", Muxes: []muxconfig.Mux{mux}}
	rules := drainRules{stored: doc, mux: &doc.Muxes[0], places: []string{""}, proxies: c.proxies, now: drainNow}
	for _, name := range c.members {
		if !slices.Contains(c.leaving, name) {
			rules.staying = append(rules.staying, name)
		}
	}
	for _, name := range c.leaving {
		i := slices.IndexFunc(mux.Members, func(m muxconfig.Member) bool { return m.Name == name })
		rules.leaving = append(rules.leaving, leaving{
			member: mux.Members[i], uid: "uid-" + name, timeout: time.Minute,
			forced: slices.Contains(c.forced, name), moved: slices.Contains(c.moved, name),
		})
	}
	return rules
}

// proxy is a running, ready proxy that serves the stored document.
func proxy(pod string, members ...muxconfig.MemberReport) Proxy {
	return Proxy{Pod: pod, Running: true, Ready: true, Report: &muxconfig.Report{
		Applied: &muxconfig.Applied{Revision: 7, Hash: "h"}, Members: members,
	}}
}

func up(name string) muxconfig.MemberReport {
	return muxconfig.MemberReport{Path: name, State: muxconfig.StateUp}
}

func down(name string) muxconfig.MemberReport {
	return muxconfig.MemberReport{Path: name, State: muxconfig.StateDown}
}

func drained(name string, phase muxconfig.DrainPhase, done bool, empty *bool) muxconfig.MemberReport {
	return muxconfig.MemberReport{Path: name, State: muxconfig.StateDraining,
		Drain: &muxconfig.DrainReport{Phase: phase, Done: done, StoreEmpty: empty}}
}

func TestEachStepOfADrain(t *testing.T) {
	yes, no := true, false
	granted, readOnly := muxconfig.DrainGranted, muxconfig.DrainReadOnly
	ab := []string{"a", "b"}
	earlier := proxy("p1", up("a"), up("b"))
	earlier.Report.Applied = &muxconfig.Applied{Revision: 6, Hash: "older"}
	starting := Proxy{Pod: "p2"}

	for name, test := range map[string]struct {
		drainCase
		want    []DrainState
		phase   muxconfig.DrainPhase // of the first
		message string               // a part of the first one's
		overdue []string
	}{
		"a replicated member is granted while another one is up": {
			drainCase: drainCase{members: ab, leaving: []string{"a"}, proxies: []Proxy{proxy("p1", up("a"), up("b"))}},
			want:      []DrainState{DrainStopping}, phase: granted,
		},
		"it is blocked while no other one is up in some proxy": {
			drainCase: drainCase{members: ab, leaving: []string{"a"}, proxies: []Proxy{proxy("p1", up("a"), up("b")), proxy("p2", up("a"), down("b"))}},
			want:      []DrainState{DrainBlocked}, message: "no other member that stays is up in p2",
		},
		"it waits for a ready proxy that has not reported": {
			drainCase: drainCase{members: ab, leaving: []string{"a"}, proxies: []Proxy{{Pod: "p1", Running: true, Ready: true}}},
			want:      []DrainState{DrainBlocked}, message: "waiting for a report of p1",
		},
		"with no proxy at all it goes": {
			drainCase: drainCase{members: ab, leaving: []string{"a"}},
			want:      []DrainState{DrainStopping}, phase: granted,
		},
		"the last member is blocked": {
			drainCase: drainCase{members: []string{"a"}, leaving: []string{"a"}, proxies: []Proxy{proxy("p1", up("a"))}},
			want:      []DrainState{DrainBlocked}, message: "add a backend to spec.backends first",
		},
		"of two that would leave nothing, none goes": {
			drainCase: drainCase{members: ab, leaving: ab, proxies: []Proxy{proxy("p1", up("a"), up("b"))}},
			want:      []DrainState{DrainBlocked, DrainBlocked},
		},
		"of two that leave one, one goes at a time": {
			drainCase: drainCase{members: []string{"a", "b", "c"}, leaving: ab, proxies: []Proxy{proxy("p1", up("a"), up("b"), up("c"))}},
			want:      []DrainState{DrainStopping, DrainBlocked}, phase: granted,
		},
		"a drain that began goes on before another begins": {
			drainCase: drainCase{members: []string{"a", "b", "c"}, leaving: ab, phases: map[string]muxconfig.DrainPhase{"b": granted},
				deadline: drainNow.Add(time.Second), proxies: []Proxy{proxy("p1", up("a"), drained("b", granted, false, nil), up("c"))}},
			want: []DrainState{DrainBlocked, DrainStopping}, message: "member b drains first",
		},
		"the last member goes by force": {
			drainCase: drainCase{members: []string{"a"}, leaving: []string{"a"}, forced: []string{"a"}, proxies: []Proxy{proxy("p1", up("a"))}},
			want:      []DrainState{DrainStopping}, phase: granted,
		},
		"a shield's origin never goes": {
			drainCase: drainCase{mode: "shield", members: []string{"a", "b", "c"}, leaving: []string{"a"}, proxies: []Proxy{proxy("p1", up("a"), up("b"), up("c"))}},
			want:      []DrainState{DrainBlocked}, message: "origin of a shield",
		},
		"a shield's mirror goes while one mirror stays": {
			drainCase: drainCase{mode: "shield", members: []string{"a", "b", "c"}, leaving: []string{"c"}, proxies: []Proxy{proxy("p1", up("a"), up("b"), up("c"))}},
			want:      []DrainState{DrainStopping}, phase: granted,
		},
		"a granted member waits for requests": {
			drainCase: drainCase{members: ab, leaving: []string{"a"}, phases: map[string]muxconfig.DrainPhase{"a": granted}, deadline: drainNow.Add(time.Second),
				proxies: []Proxy{proxy("p1", drained("a", granted, false, nil), up("b"))}},
			want: []DrainState{DrainStopping}, phase: granted, message: "requests on it to finish in p1",
		},
		"it waits for a proxy that serves an older document": {
			drainCase: drainCase{members: ab, leaving: []string{"a"}, phases: map[string]muxconfig.DrainPhase{"a": granted}, deadline: drainNow.Add(time.Second),
				proxies: []Proxy{earlier}},
			want: []DrainState{DrainStopping}, phase: granted, message: "p1",
		},
		"a pod without a running container holds nothing up": {
			drainCase: drainCase{members: ab, leaving: []string{"a"}, phases: map[string]muxconfig.DrainPhase{"a": granted}, deadline: drainNow.Add(time.Second),
				proxies: []Proxy{proxy("p1", drained("a", granted, true, nil), up("b")), starting}},
			want: []DrainState{DrainReleased},
		},
		"past the deadline the pods that hold on are named": {
			drainCase: drainCase{members: ab, leaving: []string{"a"}, phases: map[string]muxconfig.DrainPhase{"a": granted}, deadline: drainNow.Add(-time.Minute),
				proxies: []Proxy{proxy("p1", drained("a", granted, true, nil), up("b")), proxy("p2", drained("a", granted, false, nil), up("b"))}},
			want: []DrainState{DrainStopping}, phase: granted, overdue: []string{"p2"},
		},
		"in keyspace spread writes stop first": {
			drainCase: drainCase{keyspace: "spread", members: ab, leaving: []string{"a"}, proxies: []Proxy{proxy("p1", up("a"), up("b"))}},
			want:      []DrainState{DrainStopping}, phase: readOnly, message: "writes to it are being stopped",
		},
		"then it is blocked while its store holds objects": {
			drainCase: drainCase{keyspace: "spread", members: ab, leaving: []string{"a"}, phases: map[string]muxconfig.DrainPhase{"a": readOnly},
				proxies: []Proxy{proxy("p1", drained("a", readOnly, true, &no), up("b"))}},
			want: []DrainState{DrainBlocked}, phase: readOnly, message: "storagemux.dev/data-moved",
		},
		"the annotation does not let it go before all proxies stopped writing": {
			drainCase: drainCase{keyspace: "spread", members: ab, leaving: []string{"a"}, moved: []string{"a"}, phases: map[string]muxconfig.DrainPhase{"a": readOnly},
				proxies: []Proxy{proxy("p1", drained("a", readOnly, false, nil), up("b"))}},
			want: []DrainState{DrainStopping}, phase: readOnly,
		},
		"the annotation lets it go after that": {
			drainCase: drainCase{keyspace: "spread", members: ab, leaving: []string{"a"}, moved: []string{"a"}, phases: map[string]muxconfig.DrainPhase{"a": readOnly},
				proxies: []Proxy{proxy("p1", drained("a", readOnly, true, &no), up("b"))}},
			want: []DrainState{DrainStopping}, phase: granted,
		},
		"an empty store lets it go": {
			drainCase: drainCase{keyspace: "spread", members: ab, leaving: []string{"a"}, phases: map[string]muxconfig.DrainPhase{"a": readOnly},
				proxies: []Proxy{proxy("p1", drained("a", readOnly, true, &yes), up("b"))}},
			want: []DrainState{DrainStopping}, phase: granted,
		},
		"a store that turns out not to be empty becomes readable again": {
			drainCase: drainCase{keyspace: "spread", members: ab, leaving: []string{"a"}, phases: map[string]muxconfig.DrainPhase{"a": granted}, deadline: drainNow.Add(time.Second),
				proxies: []Proxy{proxy("p1", drained("a", granted, true, &no), up("b"))}},
			want: []DrainState{DrainBlocked}, phase: readOnly, message: "not empty",
		},
		"the last member of a spread mux takes writes on": {
			drainCase: drainCase{keyspace: "spread", members: []string{"a"}, leaving: []string{"a"}, proxies: []Proxy{proxy("p1", up("a"))}},
			want:      []DrainState{DrainBlocked},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.mode == "" {
				test.mode = "failover"
			}
			if test.keyspace == "" {
				test.keyspace = "replicated"
			}
			drains := test.rules().decide()
			var states []DrainState
			for _, d := range drains {
				states = append(states, d.State)
			}
			if !slices.Equal(states, test.want) {
				t.Fatalf("states are %v, want %v: %+v", states, test.want, drains)
			}
			first := drains[0]
			if first.Phase != test.phase {
				t.Errorf("phase is %q, want %q", first.Phase, test.phase)
			}
			if (first.Phase == granted) != (first.Deadline != nil) {
				t.Errorf("deadline is %v in phase %q", first.Deadline, first.Phase)
			}
			if !strings.Contains(first.Message, test.message) {
				t.Errorf("message is %q, want %q in it", first.Message, test.message)
			}
			if !slices.Equal(first.Overdue, test.overdue) {
				t.Errorf("overdue is %v, want %v", first.Overdue, test.overdue)
			}
		})
	}
}

func TestADeadlineIsKeptByLaterSteps(t *testing.T) {
	c := drainCase{mode: "failover", keyspace: "replicated", members: []string{"a", "b"}, leaving: []string{"a"},
		proxies: []Proxy{proxy("p1", up("a"), up("b"))}}
	first := c.rules().decide()[0]
	if want := drainNow.Add(time.Minute); !first.Deadline.Equal(want) {
		t.Fatalf("deadline is %v, want %v", first.Deadline, want)
	}
	c.phases = map[string]muxconfig.DrainPhase{"a": first.Phase}
	c.deadline = *first.Deadline
	c.proxies = []Proxy{proxy("p1", drained("a", first.Phase, false, nil), up("b"))}
	rules := c.rules()
	rules.now = drainNow.Add(30 * time.Second)
	if second := rules.decide()[0]; !second.Deadline.Equal(*first.Deadline) {
		t.Fatalf("deadline moved from %v to %v", first.Deadline, second.Deadline)
	}
}

func TestADrainInANestedMuxIsJudgedAtEveryPlaceOfTheMux(t *testing.T) {
	granted := muxconfig.DrainGranted
	at := func(path string, m muxconfig.MemberReport) muxconfig.MemberReport {
		m.Path = path
		return m
	}
	for name, test := range map[string]struct {
		phases  map[string]muxconfig.DrainPhase
		members []muxconfig.MemberReport
		want    DrainState
		message string
	}{
		"another member is up at both places": {
			members: []muxconfig.MemberReport{at("x/a", up("")), at("x/b", up("")), at("y/a", up("")), at("y/b", up(""))},
			want:    DrainStopping,
		},
		"another member is up at one place only": {
			members: []muxconfig.MemberReport{at("x/a", up("")), at("x/b", up("")), at("y/a", up("")), at("y/b", down(""))},
			want:    DrainBlocked, message: "no other member that stays is up in p1",
		},
		"a member of that name elsewhere does not count": {
			members: []muxconfig.MemberReport{at("x/b", up("")), at("b", up("")), at("y/b", down(""))},
			want:    DrainBlocked, message: "no other member that stays is up in p1",
		},
		"it is done at one place only": {
			phases:  map[string]muxconfig.DrainPhase{"a": granted},
			members: []muxconfig.MemberReport{at("x/a", drained("", granted, true, nil)), at("y/a", drained("", granted, false, nil))},
			want:    DrainStopping, message: "waiting for requests on it to finish in p1",
		},
		"it is done at both": {
			phases:  map[string]muxconfig.DrainPhase{"a": granted},
			members: []muxconfig.MemberReport{at("x/a", drained("", granted, true, nil)), at("y/a", drained("", granted, true, nil))},
			want:    DrainReleased,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rules := drainCase{
				mode: muxconfig.ModeFailover, keyspace: muxconfig.KeyspaceReplicated, members: []string{"a", "b"},
				phases: test.phases, deadline: drainNow.Add(time.Minute), leaving: []string{"a"}, proxies: []Proxy{proxy("p1", test.members...)},
			}.rules()
			rules.places = []string{"x", "y"}
			got := rules.decide()[0]
			if got.State != test.want || !strings.Contains(got.Message, test.message) {
				t.Errorf("got %s (%s), want %s (%s)", got.State, got.Message, test.want, test.message)
			}
		})
	}
}

func TestAShieldInAnotherMuxKeepsItsOrigin(t *testing.T) {
	rules := drainCase{
		mode: muxconfig.ModeShield, keyspace: muxconfig.KeyspaceReplicated, members: []string{"a", "b", "c"},
		leaving: []string{"a", "b"}, proxies: []Proxy{proxy("p1")},
	}.rules()
	rules.stored.Root, rules.places = "outer", []string{"m"}
	rules.proxies[0].Report.Members = []muxconfig.MemberReport{{Path: "m/c", State: muxconfig.StateUp}}
	drains := rules.decide()
	if drains[0].State != DrainBlocked || !strings.Contains(drains[0].Message, "origin") {
		t.Errorf("the origin: %s (%s), want it blocked", drains[0].State, drains[0].Message)
	}
	if drains[1].State != DrainBlocked || !strings.Contains(drains[1].Message, "of StorageMux m first") {
		t.Errorf("a mirror of which one must stay beside the origin: %s (%s)", drains[1].State, drains[1].Message)
	}
}

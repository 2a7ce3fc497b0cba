package muxengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// topics returns the topics of all events about a member so far.
func (r *rig) topics(name string) []Topic {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []Topic
	for _, e := range r.events {
		if e.Name == name {
			list = append(list, e.Topic)
		}
	}
	return list
}

func (r *rig) names() []string {
	var list []string
	for _, m := range r.Stats().Members {
		list = append(list, m.Name)
	}
	return list
}

func TestAddedBackendServesAndItsNameIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		b := newFake("b")
		b.put("k", "from b", nil)
		if err := r.AddBackend(Member{Name: "b", Storage: b}); err != nil {
			t.Fatal(err)
		}
		added := r.told(TopicBackendAdded)
		if len(added) != 1 || added[0].Name != "b" || added[0].Weight != nil {
			t.Fatalf("got %+v", added)
		}
		r.stores[0].fail(unavailable())
		r.mustGet("k", "from b")
		wantCode(t, r.AddBackend(Member{Name: "b", Storage: b}), storage.CodeBackendNameConflict)
		if n := len(r.told(TopicBackendAdded)); n != 1 {
			t.Fatalf("%d events", n)
		}
	})
}

func TestUnknownBackendCannotBeChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		wantCode(t, r.RemoveBackend("x"), storage.CodeBackendNotFound)
		wantCode(t, r.SetWeight("x", 1), storage.CodeBackendNotFound)
		wantCode(t, r.Drain(t.Context(), "x"), storage.CodeBackendNotFound)
		wantCode(t, r.CancelDrained("a"), storage.CodeBackendNotFound)
	})
}

func TestDrainWaitsForWhatIsInFlightAndThenFreesTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var done [2]error
		var wg sync.WaitGroup
		for i := range done {
			wg.Go(func() { done[i] = r.Drain(t.Context(), "a") })
		}
		time.Sleep(3 * time.Second)
		if s := r.member("a"); s.State != StateDraining || s.InFlight != 1 || s.Drain.Completed {
			t.Fatalf("got %+v", s)
		}
		wantCode(t, r.AddBackend(Member{Name: "a", Storage: newFake("new")}), storage.CodeBackendNameConflict)
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 1, 1)
		got, err := io.ReadAll(obj.Body)
		if err != nil || string(got) != "hello" {
			t.Fatalf("a request in flight did not complete: %q, %v", got, err)
		}
		_ = obj.Body.Close()
		wg.Wait()
		if err := errors.Join(done[:]...); err != nil {
			t.Fatal(err)
		}
		want := []Topic{TopicDrainStarted, TopicDrainCompleted, TopicBackendRemoved}
		if got := r.topics("a"); !slices.Equal(got, want) {
			t.Fatalf("got %v", got)
		}
		if e := r.told(TopicDrainStarted)[0]; e.InFlight != 1 {
			t.Fatalf("got %+v", e)
		}
		if e := r.told(TopicDrainCompleted)[0]; e.Drained != 3*time.Second {
			t.Fatalf("got %+v", e)
		}
		if got := r.names(); !slices.Equal(got, []string{"b"}) {
			t.Fatalf("got %v", got)
		}
		if err := r.AddBackend(Member{Name: "a", Storage: newFake("new")}); err != nil {
			t.Fatal(err)
		}
		if s := r.member("a"); s.State != StateUp || s.Hits != 0 {
			t.Fatalf("the name did not start clean: %+v", s)
		}
	})
}

func TestDrainThatIsGivenUpLeavesTheBackendDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		wantCode(t, r.Drain(ctx, "a"), storage.CodeBackendAborted)
		if s := r.member("a"); s.State != StateDraining {
			t.Fatalf("got %+v", s)
		}
		_ = obj.Body.Close()
		synctest.Wait()
		if got := r.names(); !slices.Equal(got, []string{"b"}) {
			t.Fatalf("the drain did not go on by itself: %v", got)
		}
	})
}

func TestDrainsSignalEndsWhatIsLeftWithoutBlame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		var cause error
		r.stores[0].set(func(ctx context.Context, _, _ string) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		var wg sync.WaitGroup
		wg.Go(func() { r.mustGet("k", "hello") })
		synctest.Wait()
		wg.Go(func() {
			if err := r.Drain(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := r.CancelDrained("a"); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if !errors.Is(cause, storage.CauseDrain) {
			t.Fatalf("the backend saw %v", cause)
		}
		if n := len(r.told(TopicBackendDown)); n != 0 {
			t.Fatal("a drain is no failure")
		}
		failovers := r.told(TopicFailover)
		if len(failovers) != 1 || !errors.Is(failovers[0].Cause, storage.ErrBackendDraining) {
			t.Fatalf("got %+v", failovers)
		}
	})
}

func TestDrainingTheLastBackendMakesLaterCallsFailAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, tryWhenDown)
		r.everywhere("k", "hello")
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _ = r.Drain(t.Context(), "a") })
		synctest.Wait()
		began := time.Now()
		_, err = r.get("k")
		wantCode(t, err, storage.CodeAllBackendsDown)
		_ = obj.Body.Close()
		wg.Wait()
		_, err = r.get("k")
		wantCode(t, err, storage.CodeAllBackendsDown)
		wantCode(t, r.put("k", "x"), storage.CodeAllBackendsDown)
		if time.Since(began) != 0 {
			t.Fatalf("it took %s", time.Since(began))
		}
	})
}

func TestRemoveBackendLetsWhatIsInFlightFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withMembers(func(_ int, m *Member) { m.DrainTimeout = time.Minute }))
		r.everywhere("k", "hello")
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.RemoveBackend("a"); err != nil {
			t.Fatal(err)
		}
		s := r.Stats()
		if len(s.Members) != 1 || len(s.Leaving) != 1 || s.Leaving[0].Name != "a" || s.Leaving[0].InFlight != 1 {
			t.Fatalf("got %+v", s)
		}
		got, err := io.ReadAll(obj.Body)
		if err != nil || string(got) != "hello" {
			t.Fatalf("got %q, %v", got, err)
		}
		_ = obj.Body.Close()
		if s := r.Stats(); len(s.Leaving) != 0 {
			t.Fatalf("got %+v", s)
		}
		want := []Topic{TopicDrainStarted, TopicDrainCompleted, TopicBackendRemoved}
		if got := r.topics("a"); !slices.Equal(got, want) {
			t.Fatalf("got %v", got)
		}
	})
}

func TestRemovedBackendsRequestsEndAtItsDrainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withMembers(func(_ int, m *Member) { m.DrainTimeout = time.Minute; m.Timeout = time.Hour }))
		r.everywhere("k", "hello")
		r.stores[0].hang()
		began := time.Now()
		time.AfterFunc(time.Second, func() { _ = r.RemoveBackend("a") })
		r.mustGet("k", "hello")
		if d := time.Since(began); d != time.Minute+time.Second {
			t.Fatalf("it took %s", d)
		}
	})
}

func TestApplyKeepsStateByIdentityAndDrainsWhatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		r.mustGet("k", "hello")
		a2, c := newFake("a2"), newFake("c")
		a2.put("k", "hello", nil)
		one := 1
		err := r.Apply(Config{Name: "mux", Mode: ModeFailover, Members: []Member{
			{Name: "a", Storage: a2, Weight: &one}, {Name: "c", Storage: c},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if s := r.member("a"); s.State != StateDown || s.Errors != 1 {
			t.Fatalf("the state did not survive: %+v", s)
		}
		if got := r.topics("b"); !slices.Equal(got, []Topic{TopicDrainStarted, TopicDrainCompleted, TopicBackendRemoved}) {
			t.Fatalf("got %v", got)
		}
		if got := r.topics("c"); !slices.Equal(got, []Topic{TopicBackendAdded}) {
			t.Fatalf("got %v", got)
		}
		if e := r.told(TopicWeightChanged); len(e) != 1 || e[0].FromWeight != 0 || e[0].ToWeight != 1 {
			t.Fatalf("got %+v", e)
		}
		time.Sleep(time.Second)
		r.mustGet("k", "hello")
		if a2.count("get") != 1 {
			t.Fatal("the new storage was not used")
		}
		if err := r.Apply(Config{Mode: ModeFailover, Members: []Member{{Name: "a", ID: "another", Storage: a2}}}); err != nil {
			t.Fatal(err)
		}
		if s := r.member("a"); s.Hits != 0 {
			t.Fatalf("another identity did not start clean: %+v", s)
		}
	})
}

func TestApplyThatIsRefusedChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.everywhere("k", "hello")
		wantCode(t, r.Apply(Config{Mode: "magic", Members: []Member{{Name: "x", Storage: newFake("x")}}}), storage.CodeInvalidMode)
		r.mustGet("k", "hello")
		if got := r.names(); !slices.Equal(got, []string{"a"}) {
			t.Fatalf("got %v", got)
		}
	})
}

func (r *rig) withDrain(d Drain) error {
	cfg := r.config()
	cfg.Members[0].Drain = d
	return r.Apply(cfg)
}

func TestConfiguredDrainHasItsPhasesItsDeadlineAndAWayBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withMembers(func(_ int, m *Member) { m.Timeout = time.Hour }))
		r.everywhere("k", "hello")
		if err := r.withDrain(Drain{Phase: DrainWritesRefused}); err != nil {
			t.Fatal(err)
		}
		if s := r.member("a"); s.State != StateDraining || s.Drain.Phase != DrainWritesRefused || s.Drain.Completed {
			t.Fatalf("got %+v", s)
		}
		r.mustGet("k", "hello")
		r.mustPut("new", "x")
		if err := r.Delete(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		wantCounts(t, r.stores, "get", 1, 0)
		wantCounts(t, r.stores, "set", 0, 1)
		wantCounts(t, r.stores, "delete", 1, 0)

		if err := r.withDrain(Drain{}); err != nil {
			t.Fatal(err)
		}
		r.mustPut("back", "x")
		wantCounts(t, r.stores, "set", 1, 1)
		if s := r.member("a"); s.State != StateUp {
			t.Fatalf("got %+v", s)
		}

		r.everywhere("k", "hello")
		r.stores[0].hang()
		var wg sync.WaitGroup
		began := time.Now()
		wg.Go(func() { r.mustGet("k", "hello") })
		synctest.Wait()
		if err := r.withDrain(Drain{Phase: DrainGranted, Deadline: time.Now().Add(10 * time.Second)}); err != nil {
			t.Fatal(err)
		}
		if s := r.member("a"); s.Drain.Completed || s.InFlight != 1 {
			t.Fatalf("got %+v", s)
		}
		wg.Wait()
		if d := time.Since(began); d != 10*time.Second {
			t.Fatalf("it took %s", d)
		}
		if s := r.member("a"); !s.Drain.Completed || s.InFlight != 0 || s.State != StateDraining {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestDeadlineThatHasPassedEndsRequestsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		r.stores[0].hang()
		var wg sync.WaitGroup
		wg.Go(func() { r.mustGet("k", "hello") })
		synctest.Wait()
		if err := r.withDrain(Drain{Phase: DrainGranted, Deadline: time.Now().Add(-time.Second)}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if s := r.member("a"); !s.Drain.Completed {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestDrainOfANestedMuxEndsWhatRunsOnItsLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, inner := range []Mode{ModeFailover, ModeMirror} {
			r := newRig(t, 4, nest(ModeFailover, inner), withTimeout(time.Hour))
			r.everywhere("k", "hello")
			r.stores[0].hang()
			r.stores[1].hang()
			var wg sync.WaitGroup
			began := time.Now()
			wg.Go(func() { r.mustGet("k", "hello") })
			synctest.Wait()
			if err := r.withDrain(Drain{Phase: DrainGranted, Deadline: time.Now().Add(time.Second)}); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
			if d := time.Since(began); d != time.Second {
				t.Fatalf("%s: it took %s", inner, d)
			}
			if n := len(r.told(TopicBackendDown)); n != 0 {
				t.Fatalf("%s: a drain is no failure", inner)
			}
			if err := r.withDrain(Drain{}); err != nil {
				t.Fatal(err)
			}
			r.stores[0].fail(nil)
			r.stores[1].fail(nil)
			before := r.stores[0].count("get") + r.stores[1].count("get")
			r.mustGet("k", "hello")
			synctest.Wait()
			if r.stores[0].count("get")+r.stores[1].count("get") == before {
				t.Fatalf("%s: the mux is not back", inner)
			}
		}
	})
}

func TestReloadUnderLoadFailsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3)
		r.everywhere("k", "hello")
		for _, f := range r.stores {
			f.set(func(context.Context, string, string) error { time.Sleep(time.Millisecond); return nil })
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 200 {
					r.mustGet("k", "hello")
				}
			})
		}
		for i := range 100 {
			cfg := Config{Mode: ModeRoundRobin}
			for j, f := range r.stores {
				if j != i%3 {
					cfg.Members = append(cfg.Members, Member{Name: f.name, Storage: f})
				}
			}
			if err := r.Apply(cfg); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Millisecond)
		}
		wg.Wait()
		var attempts uint64
		for _, m := range append(r.Stats().Members, r.Stats().Leaving...) {
			if m.InFlight != 0 {
				t.Fatalf("got %+v", m)
			}
			attempts += m.Hits
		}
		if calls := r.Stats().TotalCalls; calls != 1600 {
			t.Fatalf("%d calls", calls)
		}
	})
}

func TestConfigurationsAreRefusedWithTheirCode(t *testing.T) {
	store := func(name string) Member { return Member{Name: name, Storage: newFake(name)} }
	weight := func(m Member, w int) Member { m.Weight = &w; return m }
	for name, tc := range map[string]struct {
		cfg  Config
		code storage.Code
	}{
		"no backends":           {Config{Mode: ModeFailover}, storage.CodeNoBackendsConfigured},
		"two of one name":       {Config{Mode: ModeFailover, Members: []Member{store("a"), store("a")}}, storage.CodeBackendNameConflict},
		"unknown mode":          {Config{Mode: "magic", Members: []Member{store("a")}}, storage.CodeInvalidMode},
		"weighted, no weights":  {Config{Mode: ModeWeighted, Members: []Member{store("a"), store("b")}}, storage.CodeWeightedRequiresWeights},
		"negative weight":       {Config{Mode: ModeWeighted, Members: []Member{weight(store("a"), -1)}}, storage.CodeInvalidWeight},
		"only zero weights":     {Config{Mode: ModeWeighted, Members: []Member{weight(store("a"), 0)}}, storage.CodeInvalidWeight},
		"shield of one":         {Config{Mode: ModeShield, Members: []Member{store("a")}}, storage.CodeMirrorOriginRequired},
		"spread round-robin":    {Config{Mode: ModeRoundRobin, Keyspace: KeyspaceSpread, Members: []Member{store("a")}}, storage.CodeInvalidMode},
		"storage and mux":       {Config{Mode: ModeFailover, Members: []Member{{Name: "a", Storage: newFake("a"), Mux: &Config{}}}}, storage.CodeNoBackendsConfigured},
		"nested without a leaf": {Config{Mode: ModeFailover, Members: []Member{{Name: "a", Mux: &Config{Mode: ModeFailover}}}}, storage.CodeNoBackendsConfigured},
		"nested too deep":       {deep(9), storage.CodeRecursionDepthExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(tc.cfg, Options{})
			wantCode(t, err, tc.code)
		})
	}
	m, err := New(deep(8), Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
}

// deep is a configuration of so many muxes, one in the other.
func deep(levels int) Config {
	cfg := Config{Mode: ModeFailover, Members: []Member{{Name: "leaf", Storage: newFake("leaf")}}}
	for i := range levels - 1 {
		inner := cfg
		cfg = Config{Mode: ModeFailover, Members: []Member{{Name: fmt.Sprint("level", i), Mux: &inner}}}
	}
	return cfg
}

func TestRequestThatAReloadOvertakesIsServedByWhatHasCome(t *testing.T) {
	for _, mode := range []Mode{ModeFailover, ModeRoundRobin, ModeStickyByKey, ModeShield, ModeMirror} {
		for _, space := range []Keyspace{KeyspaceReplicated, KeyspaceSpread} {
			if space == KeyspaceSpread && !modes[mode].spread {
				continue
			}
			t.Run(string(mode)+"/"+string(space), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, 3, inMode(mode), func(cfg *Config, _ *Options) {
						// The last two are below another mux.
						cfg.Keyspace = space
						cfg.Members = []Member{cfg.Members[0], {Name: "below", Mux: &Config{Mode: ModeFailover, Members: cfg.Members[1:]}}}
					})
					before := r.Mux.node.Load()
					after := newRig(t, 2)
					after.everywhere("k", "hello")
					cfg := Config{Mode: mode, Keyspace: space, Members: []Member{{Name: "new", Storage: after.stores[0]}, {Name: "newer", Storage: after.stores[1]}}}
					if err := r.Apply(cfg); err != nil {
						t.Fatal(err)
					}
					// Requests that loaded the topology just before.
					if _, err := before.do(t.Context(), &request{op: opStat, key: "k"}, nil); err != nil {
						t.Errorf("stat: %v", err)
					}
					rep, err := before.do(t.Context(), &request{op: opList, list: &storage.ListOptions{}}, nil)
					if err != nil || len(rep.page.Objects) != 1 {
						t.Errorf("list: got %+v, %v", rep.page, err)
					}
					if _, err := r.write(t.Context(), before, &request{op: opSet, key: "new", set: &storage.SetOptions{}}, once("x")); err != nil {
						t.Errorf("set: %v", err)
					}
					if _, err := before.do(t.Context(), &request{op: opDelete, key: "k"}, nil); err != nil || after.stores[0].has("k") && mode != ModeRoundRobin && mode != ModeStickyByKey {
						t.Errorf("delete: %v", err)
					}
					if s := r.Stats(); s.TotalCalls != 4 || s.TotalFailovers != 0 {
						t.Errorf("got %+v", s)
					}
				})
			})
		}
	}
}

package muxengine

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// nest puts the rig's stores, two by two, into muxes of the given mode below a
// mux of another.
func nest(outer, inner Mode) option {
	return func(cfg *Config, _ *Options) {
		var members []Member
		for i := 0; i < len(cfg.Members); i += 2 {
			members = append(members, Member{
				Name: fmt.Sprint("pair", i/2),
				Mux:  &Config{Name: fmt.Sprint("pair", i/2), Mode: inner, Health: cfg.Health, Members: cfg.Members[i : i+2]},
			})
		}
		cfg.Mode, cfg.Members = outer, members
	}
}

func TestMuxOfMirrorsRoundTripsAndNamesTheLeafThatServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, nest(ModeFailover, ModeMirror))
		r.mustPut("k", "hello")
		r.mustGet("k", "hello")
		for i, want := range []bool{true, true, false, false} {
			if r.stores[i].has("k") != want {
				t.Fatalf("%s: has the key: %v", r.stores[i].name, !want)
			}
		}
		info, err := r.Stat(t.Context(), "k", storage.StatOptions{})
		if err != nil || !strings.HasPrefix(info.ServedBy, "pair0/") || len(info.Metadata) != 0 {
			t.Fatalf("got %+v, %v", info, err)
		}
	})
}

func TestNestedMuxIsDownWhenAllItsLeavesAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, nest(ModeFailover, ModeFailover))
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		r.mustGet("k", "hello")
		if s := r.member("pair0"); s.State != StateUp || s.Nested.TotalFailovers != 1 {
			t.Fatalf("got %+v", s)
		}
		r.stores[1].fail(unavailable())
		r.mustGet("k", "hello")
		s := r.member("pair0")
		if s.State != StateDown || s.ConsecutiveFailures != 0 || s.Nested.Members[0].State != StateDown || s.LastTransition.IsZero() {
			t.Fatalf("got %+v", s)
		}
		if e := r.told(TopicFailover); len(e) != 2 || e[1].From != "pair0" || e[1].To != "pair1" || e[1].Path != "" || e[0].Path != "pair0" {
			t.Fatalf("got %+v", e)
		}
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 1, 2, 2, 0)
		r.stores[0].fail(nil)
		time.Sleep(time.Second)
		r.mustGet("k", "hello")
		if s := r.member("pair0"); s.State != StateUp || r.stores[0].count("get") != 2 {
			t.Fatalf("the nested leaf was not probed: %+v", s)
		}
	})
}

func TestLeafOfAStandbyMuxIsProbedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, nest(ModeFailover, ModeFailover))
		r.everywhere("k", "hello")
		for _, f := range r.stores[:3] {
			f.fail(unavailable())
		}
		r.mustGet("k", "hello")
		for _, f := range r.stores[:3] {
			f.fail(nil)
		}
		time.Sleep(time.Second)
		r.mustGet("k", "hello")
		synctest.Wait()
		for _, pair := range r.Stats().Members {
			for _, leaf := range pair.Nested.Members {
				if leaf.State != StateUp {
					t.Fatalf("%s is %s", leaf.Path, leaf.State)
				}
			}
		}
	})
}

func TestRetryHappensAtLeavesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaf := newFake("leaf")
		leaf.fail(unavailable())
		cfg := Config{Mode: ModeFailover, Retry: Retry{MaxAttempts: 3}, Members: []Member{{Name: "leaf", Storage: leaf}}}
		for i := range MaxDepth - 1 {
			inner := cfg
			cfg = Config{Mode: ModeFailover, Retry: Retry{MaxAttempts: 3}, Members: []Member{{Name: fmt.Sprint("level", i), Mux: &inner}}}
		}
		m, err := New(cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		_, err = m.Stat(t.Context(), "k", storage.StatOptions{})
		wantCode(t, err, storage.CodeAllBackendsDown)
		if n := leaf.count("stat"); n != 3 {
			t.Fatalf("%d calls of the leaf", n)
		}
	})
}

func TestReadResumesAcrossNestedMuxes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, nest(ModeFailover, ModeFailover))
		data := strings.Repeat("0123456789", 100)
		r.everywhere("k", data)
		for i, f := range r.stores[:3] {
			f.breakAfter, f.breakWith = 100*(i+1), io.ErrUnexpectedEOF
		}
		r.mustGet("k", data)
		for _, f := range r.stores {
			if f.openBodies() != 0 {
				t.Fatalf("%s has a body open", f.name)
			}
		}
	})
}

func TestMirrorReadResumesOnAPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror))
		r.everywhere("k", "0123456789")
		for _, f := range r.stores[1:] {
			f.set(func(ctx context.Context, op, _ string) error {
				if op == "get" {
					select {
					case <-time.After(time.Second):
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				return nil
			})
		}
		r.stores[0].breakAfter, r.stores[0].breakWith = 3, io.ErrUnexpectedEOF
		r.mustGet("k", "0123456789")
	})
}

func TestMuxOfAnotherOwnerTellsItsParentOfItsHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := newRig(t, 1)
		other := newFake("other")
		inner.everywhere("k", "hello")
		other.put("k", "hello", nil)
		outer, err := New(Config{Name: "outer", Mode: ModeRoundRobin, Members: []Member{
			{Name: "inner", Storage: inner.Mux}, {Name: "other", Storage: other},
		}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer outer.Close()
		info, err := outer.Stat(t.Context(), "k", storage.StatOptions{})
		if err != nil || info.ServedBy != "inner/a" {
			t.Fatalf("got %+v, %v", info, err)
		}
		inner.stores[0].fail(unavailable())
		_, _ = inner.get("k")
		for range 4 {
			if _, err := outer.Stat(t.Context(), "k", storage.StatOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if s := outer.Stats(); s.Members[0].State != StateDown || other.count("stat") != 4 {
			t.Fatalf("got %+v", s)
		}
		err = inner.AddBackend(Member{Name: "loop", Storage: outer})
		wantCode(t, err, storage.CodeRecursionDepthExceeded)
	})
}

func TestDepthIsCountedAlsoThroughMuxesOfOtherOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var top *Mux
		member := Member{Name: "leaf", Storage: newFake("leaf")}
		var lowest *Mux
		for i := range MaxDepth {
			m, err := New(Config{Mode: ModeFailover, Members: []Member{member}}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if i == 0 {
				lowest = m
			}
			top = m
			member = Member{Name: fmt.Sprint("level", i), Storage: m}
		}
		_, err := New(Config{Mode: ModeFailover, Members: []Member{{Name: "x", Storage: top}}}, Options{})
		wantCode(t, err, storage.CodeRecursionDepthExceeded)
		err = lowest.AddBackend(Member{Name: "deeper", Mux: &Config{Mode: ModeFailover, Members: []Member{{Name: "x", Storage: newFake("x")}}}})
		wantCode(t, err, storage.CodeRecursionDepthExceeded)
	})
}

func TestReloadKeepsWhatBelongsToANestedMux(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, nest(ModeFailover, ModeRoundRobin))
		r.everywhere("k", "hello")
		r.mustGet("k", "hello")
		if err := r.Apply(r.config()); err != nil {
			t.Fatal(err)
		}
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 1, 1, 0, 0)
		if s := r.member("pair0"); s.Hits != 2 || s.Nested.TotalCalls != 2 {
			t.Fatalf("got %+v", s)
		}
		cfg := r.config()
		cfg.Members = cfg.Members[1:]
		if err := r.Apply(cfg); err != nil {
			t.Fatal(err)
		}
		if n := len(r.told(TopicBackendRemoved)); n != 3 {
			t.Fatalf("%d members were removed with the nested mux", n)
		}
	})
}

func TestWeakestCapabilitiesAreReportedWhateverTheHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, nest(ModeFailover, ModeMirror), func(cfg *Config, _ *Options) {
			weak := cfg.Members[1].Mux.Members[1].Storage.(*fake)
			weak.caps.Metadata = false
			weak.caps.Identity = storage.IdentityWeak
			weak.fail(unavailable())
		})
		got := r.Capabilities()
		want := storage.AllCapabilities()
		want.Metadata, want.Identity = false, storage.IdentityWeak
		if got != want {
			t.Fatalf("got %+v", got)
		}
	})
}

func TestOutageBelowIsNotTakenForAMissingKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, nest(ModeFailover, ModeMirror), func(cfg *Config, _ *Options) {
			cfg.Keyspace = KeyspaceSpread
			for i := range cfg.Members {
				cfg.Members[i].Mux.Keyspace = KeyspaceSpread
			}
		})
		r.stores[0].fail(unavailable())
		_, err := r.get("k")
		wantCode(t, err, storage.CodeAllBackendsDown)
		if found, err := storage.Has(t.Context(), r.Mux, "k"); err == nil {
			t.Fatalf("an outage says %v", found)
		}
	})
}

func TestStatelessMuxAsksEveryMemberAnewWithEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, func(cfg *Config, _ *Options) { cfg.Health.Stateless = true })
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		for range 3 {
			r.mustGet("k", "hello")
			r.mustPut("k", "hello")
		}
		wantCounts(t, r.stores, "get", 3, 3)
		wantCounts(t, r.stores, "set", 3, 3)
		wantCounts(t, r.stores, "probe", 0, 0)
		if m := r.member("a"); m.State != StateUp || m.Errors != 6 {
			t.Fatalf("got %+v", m)
		}
	})
}

func TestNeutralErrorMovesOnWithoutTakingTheBackendDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		r.stores[0].fail(&storage.Error{Code: storage.CodeUnavailable, Status: 503, Neutral: true})
		r.mustGet("k", "hello")
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 2, 2)
		if m := r.member("a"); m.State != StateUp {
			t.Fatalf("got %+v", m)
		}
	})
}

func TestVersionsOfAStoreInsideAnotherMuxPassThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, inMode(ModeMirror), func(_ *Config, o *Options) { o.PassVersions = true })
		_, err := r.SetStream(t.Context(), "k", once("x"), storage.SetOptions{Metadata: map[string]string{versionKey: "v1"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.stores {
			if got := f.objects["k"].info.Metadata[versionKey]; got != "v1" {
				t.Fatalf("%s keeps the version %q", f.name, got)
			}
		}
		if info, err := r.Stat(t.Context(), "k", storage.StatOptions{}); err != nil || info.Metadata[versionKey] != "v1" {
			t.Fatalf("got %+v, %v", info, err)
		}
	})
}

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

func TestSpreadLooksForAKeyOnEveryMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, spread)
		r.stores[2].put("k", "from c", nil)
		r.mustGet("k", "from c")
		if ok, err := storage.Has(t.Context(), r.Mux, "k"); !ok || err != nil {
			t.Fatalf("got %v, %v", ok, err)
		}
		_, err := r.get("nowhere")
		wantCode(t, err, storage.CodeKeyNotFound)
		if n := len(r.told(TopicFailover)); n != 0 {
			t.Fatalf("looking further is no failover, and %d were told", n)
		}
	})
}

func TestSpreadNeverSaysNotFoundWhileAMemberCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, spread)
		r.stores[2].put("k", "from c", nil)
		r.stores[0].fail(unavailable())
		_, err := r.get("nowhere")
		wantCode(t, err, storage.CodeAllBackendsDown)
		_, err = r.get("nowhere")
		wantCode(t, err, storage.CodeAllBackendsDown)
		wantCounts(t, r.stores, "get", 1, 2, 2)
		r.mustGet("k", "from c")
		r.mustPut("new", "x")
		if !r.stores[1].has("new") {
			t.Fatal("writes go on")
		}
	})
}

func TestSpreadDeletesEverywhereOrSaysThatItDidNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, spread)
		r.everywhere("k", "x")
		if err := r.Delete(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		for _, f := range r.stores {
			if f.has("k") {
				t.Fatalf("%s still has the key", f.name)
			}
		}
		r.stores[1].fail(unavailable())
		wantCode(t, r.Delete(t.Context(), "k"), storage.CodeAllBackendsDown)
		wantCode(t, r.Delete(t.Context(), "k"), storage.CodeAllBackendsDown)
		wantCounts(t, r.stores, "delete", 3, 2, 3)
	})
}

func TestSpreadListsTheUnionOfAllMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, spread)
		for i := range 25 {
			r.stores[i%3].put(fmt.Sprintf("dir%d/key%02d", i/10, i), "x", nil)
		}
		r.everywhere("dir1/same", "x")
		for _, limit := range []int{1, 2, 7, 1000} {
			var keys, prefixes []string
			for after := ""; ; {
				page, err := r.List(t.Context(), storage.ListOptions{After: after, Limit: limit})
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range page.Objects {
					keys = append(keys, o.Key)
				}
				if after = page.Next; after == "" {
					break
				}
			}
			for after := ""; ; {
				page, err := r.List(t.Context(), storage.ListOptions{After: after, Limit: limit, Delimiter: "/"})
				if err != nil {
					t.Fatal(err)
				}
				prefixes = append(prefixes, page.Prefixes...)
				if after = page.Next; after == "" {
					break
				}
			}
			if len(keys) != 26 || !slices.IsSorted(keys) || len(slices.Compact(slices.Clone(keys))) != 26 {
				t.Fatalf("limit %d: got %v", limit, keys)
			}
			if !slices.Equal(prefixes, []string{"dir0/", "dir1/", "dir2/"}) {
				t.Fatalf("limit %d: got %v", limit, prefixes)
			}
		}
		r.stores[1].fail(unavailable())
		_, err := r.List(t.Context(), storage.ListOptions{})
		wantCode(t, err, storage.CodeAllBackendsDown)
	})
}

func TestSpreadWriteRemovesTheOldCopyElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, spread)
		r.stores[0].fail(unavailable())
		r.mustPut("k", "old")
		if !r.stores[1].has("k") {
			t.Fatal("the write went nowhere")
		}
		r.stores[2].put("k", "older still, by another client", nil)
		r.stores[0].fail(nil)
		time.Sleep(time.Second)
		r.mustPut("k", "new")
		if r.stores[0].content("k") != "new" || r.stores[1].has("k") || r.stores[2].has("k") {
			t.Fatal("old copies are left")
		}
	})
}

func TestSpreadCleanUpNeverTouchesANewerCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, spread)
		r.stores[1].put("k", "newer", map[string]string{versionKey: "ffffffffffffffff-00000000"})
		r.mustPut("k", "older")
		if !r.stores[1].has("k") {
			t.Fatal("the winner's bytes were deleted")
		}
	})
}

func TestSpreadCleanUpIsBestEffort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, spread, withTimeout(time.Minute))
		r.stores[1].hang()
		began := time.Now()
		r.mustPut("k", "x")
		if d := time.Since(began); d != cleanUpTime {
			t.Fatalf("it took %s", d)
		}
		if s := r.member("b"); s.State != StateDown || s.LastError.Code != storage.CodeBackendTimeout {
			t.Fatalf("a member that holds up every write must not stay up: %+v", s)
		}
		began = time.Now()
		r.mustPut("k", "y")
		if d := time.Since(began); d != 0 {
			t.Fatalf("it took %s", d)
		}
	})
}

func TestSpreadMemberThatIsLeavingGivesUpItsCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, spread)
		r.stores[0].put("k", "old", nil)
		r.stores[0].put("other", "stays", nil)
		time.Sleep(time.Second)
		if err := r.withDrain(Drain{Phase: DrainWritesRefused}); err != nil {
			t.Fatal(err)
		}
		r.mustPut("k", "new")
		if r.stores[0].has("k") || r.stores[1].content("k") != "new" {
			t.Fatal("the old copy is left")
		}
		r.mustGet("other", "stays")
		if err := r.withDrain(Drain{Phase: DrainGranted}); err != nil {
			t.Fatal(err)
		}
		_, err := r.get("other")
		wantCode(t, err, storage.CodeKeyNotFound)
	})
}

func TestSpreadChangesAnObjectWhereItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, spread)
		r.stores[1].put("k", "0123456789", nil)
		if _, err := r.SetPartial(t.Context(), "k", 3, once("xyz")); err != nil {
			t.Fatal(err)
		}
		if r.stores[1].content("k") != "012xyz6789" || r.stores[0].has("k") {
			t.Fatalf("got %q", r.stores[1].content("k"))
		}
		if _, err := r.SetPartial(t.Context(), "new", 2, once("x")); err != nil || !r.stores[0].has("new") {
			t.Fatalf("got %v", err)
		}
		r.stores[2].fail(unavailable())
		_, err := r.SetPartial(t.Context(), "unknown", 0, once("x"))
		wantCode(t, err, storage.CodeAllBackendsDown)
	})
}

func TestSpreadRefusesConditionalWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, spread)
		opts := storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}}
		_, err := r.SetStream(t.Context(), "k", once("x"), opts)
		wantCode(t, err, storage.CodeUnsupported)
	})
}

func TestReplicatedNotFoundIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.stores[1].put("k", "x", nil)
		_, err := r.get("k")
		wantCode(t, err, storage.CodeKeyNotFound)
		wantCounts(t, r.stores, "get", 1, 0)
		if s := r.member("a"); s.Misses != 1 {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestMergedPagesStopWhereOneMemberHasMoreToCome(t *testing.T) {
	page := func(next string, keys ...string) storage.ListPage {
		p := storage.ListPage{Next: next}
		for _, k := range keys {
			p.Objects = append(p.Objects, storage.Info{Key: k})
		}
		return p
	}
	for name, tc := range map[string]struct {
		limit int
		pages []storage.ListPage
		want  string
	}{
		"nothing":              {10, []storage.ListPage{page(""), page("")}, "[] "},
		"interleaved":          {10, []storage.ListPage{page("", "a", "c"), page("", "b", "c", "d")}, "[a b c d] "},
		"limit":                {2, []storage.ListPage{page("", "a", "c"), page("", "b")}, "[a b] b"},
		"limit just reached":   {3, []storage.ListPage{page("", "a", "c"), page("", "b")}, "[a b c] "},
		"short page of one":    {10, []storage.ListPage{page("b", "a", "b"), page("", "c", "d")}, "[a b] b"},
		"empty page with more": {10, []storage.ListPage{page("m"), page("", "a", "z")}, "[a] m"},
		"two with more":        {10, []storage.ListPage{page("c", "c"), page("b", "a", "b")}, "[a b] b"},
	} {
		got := mergePages(tc.limit, tc.pages)
		var keys []string
		for _, o := range got.Objects {
			keys = append(keys, o.Key)
		}
		if s := fmt.Sprint(keys, " ", got.Next); s != tc.want {
			t.Errorf("%s: got %q, want %q", name, s, tc.want)
		}
	}
}

func TestSpreadReadResumesWhereTheSameVersionIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, spread)
		r.stores[1].put("k", "0123456789", map[string]string{versionKey: "v"})
		r.stores[2].put("k", "0123456789", map[string]string{versionKey: "v"})
		r.stores[1].breakAfter, r.stores[1].breakWith = 4, io.ErrUnexpectedEOF
		r.mustGet("k", "0123456789")
	})
}

func TestErrorsOfAWalkAreFoundInItsChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.stores[0].fail(fmt.Errorf("dial: %w", context.DeadlineExceeded))
		_, err := r.get("k")
		wantCode(t, err, storage.CodeAllBackendsDown)
		if !errors.Is(err, context.DeadlineExceeded) || storage.Classify(err) != storage.ClassTransient {
			t.Fatalf("got %v", err)
		}
		if s := r.member("a"); s.State != StateDown || s.LastError.Message != "context deadline exceeded" {
			t.Fatalf("a time limit of the store's own is its failure: %+v", s.LastError)
		}
	})
}

func TestSpreadWithoutAnyMemberLeftSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, spread, withMembers(func(_ int, m *Member) { m.Drain.Phase = DrainGranted }))
		_, err := r.List(t.Context(), storage.ListOptions{})
		wantCode(t, err, storage.CodeAllBackendsDown)
		wantCode(t, r.Delete(t.Context(), "k"), storage.CodeAllBackendsDown)
	})
}

func TestSpreadChangesEveryCopyWhereWritesGoToAll(t *testing.T) {
	for _, mode := range []Mode{ModeShield, ModeMirror} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 3, inMode(mode), spread)
			r.stores[0].put("k", "0123", nil)
			r.stores[1].put("k", "0123", nil)
			if _, err := r.SetPartial(t.Context(), "k", 1, once("XX")); err != nil {
				t.Fatal(err)
			}
			if a, b := r.stores[0].content("k"), r.stores[1].content("k"); a != "0XX3" || b != "0XX3" || r.stores[2].has("k") {
				t.Fatalf("%s: got %q and %q", mode, a, b)
			}
			if told := r.told(TopicFanoutPartial); len(told) != 0 {
				t.Fatalf("got %v", told)
			}
			r.stores[1].fail(unavailable())
			if _, err := r.SetPartial(t.Context(), "k", 0, once("Y")); err != nil || r.stores[0].content("k") != "YXX3" {
				t.Fatalf("%s: %v", mode, err)
			}
			if told := r.told(TopicFanoutPartial); len(told) != 1 || told[0].Failed[0] != "b" {
				t.Fatalf("what was not changed is named: got %v", told)
			}
			// Nobody holds it, but not everybody can be asked.
			if _, err := r.SetPartial(t.Context(), "new", 0, once("Y")); storage.CodeOf(err) != storage.CodeAllBackendsDown {
				t.Fatalf("%s: got %v", mode, err)
			}
		})
	}
}

func TestSpreadCleanUpOfTwoProxiesLosesNoAcknowledgedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, spread)
		a, b := r.stores[0], r.stores[1]
		other, err := New(*r.node.Load().cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		b.put("k", "old", map[string]string{versionKey: "0"})
		// The other proxy takes a for down for a moment.
		a.fail(unavailable())
		_, _ = storage.Set(t.Context(), other, "other", []byte("x"), storage.SetOptions{})
		a.fail(nil)
		// This one has looked at the old copy and is about to remove it ...
		hold := make(chan struct{})
		var first sync.Once
		b.set(func(_ context.Context, op, _ string) error {
			if op == "delete" {
				first.Do(func() { <-hold })
			}
			return nil
		})
		done := make(chan error, 1)
		go func() { done <- r.put("k", "one") }()
		synctest.Wait()
		// ... while the other writes there, and then removes what this one wrote.
		b.mu.Lock()
		b.after = func(context.Context, string) error {
			time.Sleep(2 * time.Second)
			_, _ = storage.Has(context.Background(), other, "anything")
			return nil
		}
		b.mu.Unlock()
		if _, err := storage.Set(t.Context(), other, "k", []byte("two"), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		close(hold)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if b.content("k") != "two" {
			t.Fatalf("a holds %q, b holds %q", a.content("k"), b.content("k"))
		}
	})
}

func TestSpreadCleanUpKeepsCopiesThatCouldBeOthersByNow(t *testing.T) {
	r := newRig(t, 2, spread, withMembers(func(i int, m *Member) {
		m.Storage = struct{ storage.Storage }{m.Storage} // which deletes without conditions only
	}))
	r.stores[1].put("k", "old", nil)
	time.Sleep(time.Millisecond)
	r.mustPut("k", "new")
	if !r.stores[1].has("k") {
		t.Fatal("the old copy was removed without a condition")
	}
}

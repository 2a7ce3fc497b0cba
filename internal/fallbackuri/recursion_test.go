package fallbackuri

import (
	"slices"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
)

func TestNestedURIsAreWalkedInTheirOrder(t *testing.T) {
	r := newRig(t, Policy{})
	r.everywhere("x")
	r.a.fail(unavailable())
	r.b.fail(unavailable())
	r.wantGet(ladderOf(ladderOf("memory://b/k", "memory://a/k"), "memory://c/k"), "x")
	r.wantCounts("get", 1, 1, 1)
	if e := r.told(TopicFellThrough); len(e) != 3 || e[0].Candidate != "memory://b/k" || e[1].Candidate != "memory://a/k" {
		t.Fatalf("the canonical order was walked: %+v", e)
	}
}

func TestURIsNestedTooDeepAreRefusedAndTheWalkStops(t *testing.T) {
	for limit, deepest := range map[int]int{0: 4, 1: 1, 8: 8} {
		r := newRig(t, Policy{MaxDepth: limit})
		r.everywhere("x")
		r.wantGet(nested(deepest, "memory://a/k"), "x")
		_, _, err := r.Get(t.Context(), ladderOf(nested(deepest, "memory://a/k"), "memory://b/k"))
		f := wantFailure(t, err, storage.CodeFallbackMaxDepthExceeded)
		if f.Depth != deepest || f.URI == "" || storage.Classify(err) != storage.ClassSemantic || r.b.count("get") != 0 {
			t.Fatalf("limit %d: got %+v, %v", limit, f, err)
		}
	}
}

// TestDepthCountsOnTheWayThroughOtherResources has a chain of ladders that no
// URI shows.
func TestDepthCountsOnTheWayThroughOtherResources(t *testing.T) {
	r := newRig(t, Policy{})
	r.everywhere("x")
	last := ladderOf("memory://a")
	for _, name := range []string{"l1", "l2", "l3", "l4"} {
		l, err := NewStorage(last, Options{Resolver: r.stores})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		r.stores[name] = l
		last = ladderOf("memory://" + name)
	}
	if _, _, err := storage.Get(t.Context(), r.stores["l4"], "k"); err != nil {
		t.Fatal(err)
	}
	top, err := NewStorage(last, Options{Resolver: r.stores})
	if err != nil {
		t.Fatal(err)
	}
	defer top.Close()
	_, _, err = storage.Get(t.Context(), top, "k")
	if f := wantFailure(t, err, storage.CodeFallbackMaxDepthExceeded); f.Depth != 4 {
		t.Fatalf("got %+v", f)
	}
	if err := top.Delete(t.Context(), "k"); storage.CodeOf(err) != storage.CodeFallbackMaxDepthExceeded {
		t.Fatalf("got %v", err)
	}
}

// circle is a ladder one of whose candidates, by way of the resource self, is the
// ladder itself.
func circleOf(t *testing.T, r *rig, candidates ...string) *Ladder {
	t.Helper()
	self := &link{}
	r.stores["self"] = self
	l, err := NewStorage(ladderOf(candidates...), Options{Resolver: r.stores, Events: r.note})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	self.to = l
	return l
}

func TestCandidateThatLeadsBackIsPassedOverWithAnEvent(t *testing.T) {
	r := newRig(t, Policy{})
	r.everywhere("x")
	l := circleOf(t, r, "memory://self", "memory://a")
	if data, _, err := storage.Get(t.Context(), l, "k"); err != nil || string(data) != "x" {
		t.Fatalf("got %q, %v", data, err)
	}
	e := r.told(TopicCycleDetected)
	if len(e) != 1 || e[0].Candidate != "memory://self" || e[0].URI != shown(l.String()) || e[0].Time.IsZero() {
		t.Fatalf("got %+v", e)
	}
	if _, err := storage.Set(t.Context(), l, "k", []byte("y"), storage.SetOptions{}); err != nil || r.a.content(t, "k") != "y" {
		t.Fatalf("a write that could go nowhere else failed: %v", err)
	}
	if page, err := l.List(t.Context(), storage.ListOptions{}); err != nil || len(page.Objects) != 1 {
		t.Fatalf("got %+v, %v", page, err)
	}
	if err := l.Delete(t.Context(), "k"); err != nil || r.a.content(t, "k") != "" {
		t.Fatalf("got %v", err)
	}
}

func TestWalkOfNothingButCirclesSaysHowItGoesRound(t *testing.T) {
	r := newRig(t, Policy{})
	l := circleOf(t, r, "memory://self")
	_, get := storage.Has(t.Context(), l, "k")
	_, set := storage.Set(t.Context(), l, "k", nil, storage.SetOptions{})
	_, list := l.List(t.Context(), storage.ListOptions{})
	for op, err := range map[string]error{"stat": get, "set": set, "list": list, "delete": l.Delete(t.Context(), "k")} {
		f := wantFailure(t, err, storage.CodeFallbackCircularReference)
		if want := []string{"memory://self", "memory://self"}; !slices.Equal(f.CycleChain, want) || f.URI != l.String() {
			t.Errorf("%s: got %q of %s", op, f.CycleChain, f.URI)
		}
		if storage.Classify(err) != storage.ClassSemantic {
			t.Errorf("got %v", err)
		}
	}
}

func TestReorderedSetOfCandidatesIsRecognised(t *testing.T) {
	r := newRig(t, Policy{})
	r.everywhere("x")
	r.a.fail(unavailable())
	r.b.fail(unavailable())
	self := &link{}
	r.stores["self"] = self
	text := ladderOf(ladderOf("memory://a", "memory://b", "memory://self"), "memory://c")
	l, err := NewStorage(text, Options{Resolver: r.stores, Events: r.note})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	again, err := NewStorage(ladderOf(ladderOf("memory://self", "memory://b", "memory://a"), "memory://c"), Options{Resolver: r.stores, Events: r.note})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	self.to = again
	if _, _, err := storage.Get(t.Context(), l, "k"); err != nil {
		t.Fatal(err)
	}
	if r.a.count("get") != 1 || r.b.count("get") != 1 {
		t.Fatalf("the same set was walked twice: %d, %d", r.a.count("get"), r.b.count("get"))
	}
	if e := r.told(TopicCycleDetected); len(e) != 1 {
		t.Fatalf("got %+v", e)
	}
}

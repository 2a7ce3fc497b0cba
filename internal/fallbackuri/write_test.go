package fallbackuri

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"context"

	"github.com/suaveplan/storagemux/internal/storage"
)

func (r *rig) set(data string) error {
	r.t.Helper()
	_, err := r.Set(r.t.Context(), abc, []byte(data), storage.SetOptions{})
	return err
}

func (r *rig) wantContents(want ...string) {
	r.t.Helper()
	got := []string{r.a.content(r.t, "k"), r.b.content(r.t, "k"), r.c.content(r.t, "k")}
	if !slices.Equal(got, want) {
		r.t.Fatalf("got %q, want %q", got, want)
	}
}

func statuses(f *Failure) (list []MirrorStatus) {
	for _, o := range f.MirrorOutcomes {
		list = append(list, o.Status)
	}
	return list
}

func TestWriteGoesToEveryCandidate(t *testing.T) {
	r := newRig(t, Policy{})
	if err := r.set("x"); err != nil {
		t.Fatal(err)
	}
	r.wantContents("x", "x", "x")
	if _, err := r.SetPartial(t.Context(), abc, 1, storage.Bytes([]byte("yz"))); err != nil {
		t.Fatal(err)
	}
	r.wantContents("xyz", "xyz", "xyz")
	body := storage.Stream(strings.NewReader("once"), 4)
	if _, err := r.SetStream(t.Context(), abc, body, storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	r.wantContents("once", "once", "once")
}

func TestWriteThatMissesACandidateFailsAndTellsOfEach(t *testing.T) {
	r := newRig(t, Policy{})
	cause := unavailable()
	r.b.fail(cause)
	err := r.set("x")
	f := wantFailure(t, err, storage.CodeFallbackWriteMirrorFailed)
	if want := []MirrorStatus{MirrorFulfilled, MirrorRejected, MirrorFulfilled}; !slices.Equal(statuses(f), want) || f.URI != shown(abc) {
		t.Fatalf("got %+v", f)
	}
	if f.MirrorOutcomes[1].Err != cause || f.MirrorOutcomes[1].URI != "memory://b/k" || !errors.Is(err, cause) {
		t.Fatalf("the candidate's own error is not kept: %+v", f.MirrorOutcomes[1])
	}
	r.wantContents("x", "", "x")
	if storage.Classify(err) != storage.ClassSemantic {
		t.Fatal("a write that reached some is an outage")
	}
	if e := r.told(TopicWritePartial); len(e) != 1 || len(e[0].Failed) != 1 || e[0].Failed[0].URI != "memory://b/k" {
		t.Fatalf("got %+v", e)
	}
}

func TestWriteThatEveryCandidateRefusesIsAFailedMirrorToo(t *testing.T) {
	r := newRig(t, Policy{})
	for _, f := range []*fake{r.a, r.b, r.c} {
		f.fail(unavailable())
	}
	err := r.set("x")
	_ = wantFailure(t, err, storage.CodeFallbackWriteMirrorFailed)
	if storage.Classify(err) != storage.ClassTransient {
		t.Fatalf("got %v", err)
	}
	for _, f := range []*fake{r.a, r.b, r.c} {
		f.fail(refusal(storage.CodeUnsupported))
	}
	if err := r.set("x"); storage.CodeOf(err) != storage.CodeFallbackWriteMirrorFailed || storage.Classify(err) != storage.ClassSemantic {
		t.Fatalf("got %v", err)
	}
}

func TestFirstSuccessWritesInOrderUntilOneTakesIt(t *testing.T) {
	r := newRig(t, Policy{WriteMode: WriteFirstSuccess})
	if err := r.set("x"); err != nil {
		t.Fatal(err)
	}
	r.wantContents("x", "", "")
	r.a.fail(unavailable())
	if _, err := r.SetStream(t.Context(), abc, storage.Stream(strings.NewReader("kept"), -1), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	r.a.fail(nil)
	r.wantContents("x", "kept", "")
	r.wantCounts("set", 2, 1, 0)
	if e := r.told(TopicFellThrough); len(e) != 1 || e[0].Op != "SetStream" {
		t.Fatalf("got %+v", e)
	}
}

func TestFirstSuccessThatNobodyTakesIsAnExhaustedWalk(t *testing.T) {
	r := newRig(t, Policy{WriteMode: WriteFirstSuccess})
	for _, f := range []*fake{r.a, r.b, r.c} {
		f.fail(unavailable())
	}
	if f := wantFailure(t, r.set("x"), storage.CodeFallbackAllCandidatesFailed); len(f.CandidateErrors) != 3 {
		t.Fatalf("got %+v", f)
	}
	r.a.fail(refusal(storage.CodeUnsupported))
	r.b.fail(nil)
	if err := r.set("x"); storage.CodeOf(err) != storage.CodeUnsupported || r.b.count("set") != 1 {
		t.Fatalf("a refusal was passed over: %v", err)
	}
}

func TestNothingIsCancelledByTheFirstSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Policy{})
		r.b.set(func(ctx context.Context, _ string) error {
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err := r.set("x"); err != nil {
			t.Fatal(err)
		}
		r.b.set(nil)
		r.wantContents("x", "x", "x")
	})
}

func TestFirstCandidateDecidesWhetherAWritesConditionHolds(t *testing.T) {
	create := storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}}
	r := newRig(t, Policy{})
	r.a.put(t, "k", "there")
	_, err := r.Set(t.Context(), abc, []byte("x"), create)
	if storage.CodeOf(err) != storage.CodePreconditionFailed {
		t.Fatalf("got %v", err)
	}
	r.wantContents("there", "", "")
	other := ladderOf("memory://b/k", "memory://a/k")
	if _, err := r.Set(t.Context(), other, []byte("x"), create); err != nil {
		t.Fatal(err)
	}
	r.wantContents("x", "x", "")
	r.c.fail(unavailable())
	_, err = r.Set(t.Context(), ladderOf("memory://c/k", "memory://a/k"), []byte("y"), create)
	f := wantFailure(t, err, storage.CodeFallbackWriteMirrorFailed)
	if want := []MirrorStatus{MirrorRejected, MirrorSkipped}; !slices.Equal(statuses(f), want) {
		t.Fatalf("got %+v", f)
	}
}

func TestDeleteSucceedsWithOneCandidateOrNeedsAllByPolicy(t *testing.T) {
	for _, mode := range []DeleteMode{"", DeleteAny, DeleteAll} {
		r := newRig(t, Policy{DeleteMode: mode, WriteMode: WriteFirstSuccess})
		r.everywhere("x")
		r.b.set(func(_ context.Context, op string) error {
			if op == "delete" {
				return unavailable()
			}
			return nil
		})
		err := r.Delete(t.Context(), abc)
		r.wantCounts("delete", 1, 1, 1)
		r.wantContents("", "x", "")
		if e := r.told(TopicWritePartial); len(e) != 1 || e[0].Op != "Delete" {
			t.Fatalf("got %+v", e)
		}
		if mode != DeleteAll {
			if err != nil {
				t.Fatalf("mode %q: got %v", mode, err)
			}
			continue
		}
		f := wantFailure(t, err, storage.CodeFallbackWriteMirrorFailed)
		if want := []MirrorStatus{MirrorFulfilled, MirrorRejected, MirrorFulfilled}; !slices.Equal(statuses(f), want) {
			t.Fatalf("got %+v", f)
		}
	}
}

func TestDeleteThatNobodyConfirmsFailsInEitherMode(t *testing.T) {
	for _, mode := range []DeleteMode{DeleteAny, DeleteAll} {
		r := newRig(t, Policy{DeleteMode: mode})
		for _, f := range []*fake{r.a, r.b, r.c} {
			f.fail(unavailable())
		}
		_ = wantFailure(t, r.Delete(t.Context(), abc), storage.CodeFallbackWriteMirrorFailed)
	}
}

func TestBodyThatIsCutIsTheWritersFaultAndLeavesTheOldObjects(t *testing.T) {
	for _, mode := range []WriteMode{WriteAll, WriteFirstSuccess} {
		r := newRig(t, Policy{WriteMode: mode})
		r.everywhere("old")
		broken := errors.New("the client is gone")
		_, err := r.SetStream(t.Context(), abc, storage.Stream(&cut{"ne", broken}, 3), storage.SetOptions{})
		if storage.CodeOf(err) != storage.CodeInvalidBody || !errors.Is(err, broken) {
			t.Fatalf("mode %s: got %v", mode, err)
		}
		r.wantContents("old", "old", "old")
	}
}

type cut struct {
	data string
	err  error
}

func (c *cut) Read(p []byte) (int, error) {
	if c.data == "" {
		return 0, c.err
	}
	n := copy(p, c.data)
	c.data = c.data[n:]
	return n, nil
}

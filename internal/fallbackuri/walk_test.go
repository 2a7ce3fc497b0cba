package fallbackuri

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

func TestWalkTakesTheFirstAnswerInTheOrderOfTheURI(t *testing.T) {
	r := newRig(t, Policy{})
	r.everywhere("x")
	r.b.put(t, "k", "other")
	if info := r.wantGet(abc, "x"); info.ServedBy != "memory://a/k" || info.Key != "k" {
		t.Fatalf("got %+v", info)
	}
	r.wantCounts("get", 1, 0, 0)
	r.a.fail(unavailable())
	r.wantGet(abc, "other")
	r.wantCounts("get", 2, 1, 0)
	if e := r.told(TopicFellThrough); len(e) != 1 || e[0].Candidate != "memory://a/k" || e[0].Index != 0 || e[0].Op != "GetStream" || e[0].Err == nil {
		t.Fatalf("got %+v", e)
	}
	r.wantGet(ladderOf("memory://c/k", "memory://b/k"), "x")
}

// TestErrorsMeanWhatTheTableSays has a row for each of the document's.
func TestErrorsMeanWhatTheTableSays(t *testing.T) {
	below := func(code storage.Code) error { return storage.Errorf(code, "", "from below") }
	for name, tc := range map[string]struct {
		policy Policy
		err    error
		// want is the code that surfaces, "" if the next candidate answers.
		want storage.Code
	}{
		"not found":                       {err: refusal(storage.CodeKeyNotFound)},
		"not found, final by policy":      {Policy{NotFoundIsFinal: true}, refusal(storage.CodeKeyNotFound), storage.CodeKeyNotFound},
		"not found, final under any":      {Policy{NotFoundIsFinal: true, ErrorClass: ErrorClassAny}, refusal(storage.CodeKeyNotFound), storage.CodeKeyNotFound},
		"an invalid URI":                  {err: below(storage.CodeFallbackInvalidURI), want: storage.CodeFallbackInvalidURI},
		"no candidates":                   {err: below(storage.CodeFallbackNoCandidates), want: storage.CodeFallbackNoCandidates},
		"unsupported":                     {err: refusal(storage.CodeUnsupported), want: storage.CodeUnsupported},
		"an adapter's error":              {err: unavailable()},
		"an error of no kind":             {err: errors.New("something")},
		"a time limit":                    {err: refusal(storage.CodeBackendTimeout)},
		"a store's own abort":             {err: refusal(storage.CodeBackendAborted), want: storage.CodeFallbackAborted},
		"a store's own abort, passed":     {Policy{PassAborts: true}, refusal(storage.CodeBackendAborted), ""},
		"a store's own deadline, passed":  {Policy{PassAborts: true}, context.DeadlineExceeded, ""},
		"a ladder below, aborted":         {err: below(storage.CodeFallbackAborted), want: storage.CodeFallbackAborted},
		"a ladder below, exhausted":       {err: below(storage.CodeFallbackAllCandidatesFailed)},
		"too deep":                        {err: below(storage.CodeFallbackMaxDepthExceeded), want: storage.CodeFallbackMaxDepthExceeded},
		"a circle":                        {err: below(storage.CodeFallbackCircularReference), want: storage.CodeFallbackCircularReference},
		"a mux below, all down":           {err: refusal(storage.CodeAllBackendsDown)},
		"access denied":                   {err: refusal(storage.CodeAccessDenied), want: storage.CodeAccessDenied},
		"access denied, any leads on":     {Policy{ErrorClass: ErrorClassAny}, refusal(storage.CodeAccessDenied), ""},
		"unsupported, any leads on":       {Policy{ErrorClass: ErrorClassAny}, refusal(storage.CodeUnsupported), ""},
		"an invalid URI, any leads on":    {Policy{ErrorClass: ErrorClassAny}, below(storage.CodeFallbackInvalidURI), ""},
		"too deep, any leads on":          {Policy{ErrorClass: ErrorClassAny}, below(storage.CodeFallbackMaxDepthExceeded), ""},
		"a failed precondition under any": {Policy{ErrorClass: ErrorClassAny}, refusal(storage.CodePreconditionFailed), storage.CodePreconditionFailed},
		"not modified under any":          {Policy{ErrorClass: ErrorClassAny}, refusal(storage.CodeNotModified), storage.CodeNotModified},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tc.policy)
			r.everywhere("x")
			r.a.fail(tc.err)
			data, _, err := r.Get(t.Context(), abc)
			if storage.CodeOf(err) != tc.want || (tc.want == "") != (string(data) == "x") {
				t.Fatalf("got %q, %v, want %q", data, err, tc.want)
			}
			if tc.want != "" && r.b.count("get") != 0 {
				t.Fatal("the walk went on")
			}
		})
	}
}

func TestUnknownSchemeIsRefusedWithItsNameWhenItsTurnComes(t *testing.T) {
	r := newRig(t, Policy{})
	r.everywhere("x")
	r.wantGet(ladderOf("memory://a/k", "gopher://unknown/k"), "x")
	_, _, err := r.Get(t.Context(), ladderOf("gopher://unknown/k", "memory://a/k"))
	if storage.CodeOf(err) != storage.CodeFallbackInvalidURI || !contains(err.Error(), `"gopher"`) || r.a.count("get") != 1 {
		t.Fatalf("got %v", err)
	}
}

func TestExhaustedWalkNamesEveryCandidateAndItsError(t *testing.T) {
	for _, walk := range []Walk{WalkSequential, WalkParallel} {
		r := newRig(t, Policy{Walk: walk})
		missing, down := refusal(storage.CodeKeyNotFound), unavailable()
		r.a.fail(missing)
		r.b.fail(down)
		r.c.fail(missing)
		_, _, err := r.Get(t.Context(), abc)
		f := wantFailure(t, err, storage.CodeFallbackAllCandidatesFailed)
		if f.URI != shown(abc) || len(f.CandidateErrors) != 3 {
			t.Fatalf("got %+v", f)
		}
		for i, want := range []error{missing, down, missing} {
			if f.CandidateErrors[i].Err != want || f.CandidateErrors[i].URI != shown("memory://"+string("abc"[i])+"/k") {
				t.Fatalf("%s: got %+v", walk, f.CandidateErrors[i])
			}
		}
		if errors.Is(err, storage.ErrKeyNotFound) || storage.Classify(err) != storage.ClassTransient {
			t.Fatalf("an outage passes for a missing key: %v", err)
		}
	}
}

func TestMissingObjectIsTheCauseOfTheExhaustedWalk(t *testing.T) {
	r := newRig(t, Policy{})
	_, _, err := r.Get(t.Context(), abc)
	_ = wantFailure(t, err, storage.CodeFallbackAllCandidatesFailed)
	if !errors.Is(err, storage.ErrKeyNotFound) {
		t.Fatalf("got %v", err)
	}
	if found, err := r.Has(t.Context(), nested(2, "memory://a/k", "memory://b/k")); found || err != nil {
		t.Fatalf("got %v, %v", found, err)
	}
	r.b.fail(unavailable())
	if found, err := r.Has(t.Context(), abc); err == nil {
		t.Fatalf("an outage says %v", found)
	}
	r.c.put(t, "k", "x")
	if found, err := r.Has(t.Context(), abc); !found || err != nil {
		t.Fatalf("got %v, %v", found, err)
	}
}

func TestCallerWhoHasLeftIsAnsweredByNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := newRig(t, Policy{PassAborts: true})
	r.everywhere("x")
	_, _, err := r.Get(ctx, abc)
	if f := wantFailure(t, err, storage.CodeFallbackAborted); f.URI != shown(abc) || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	r.wantCounts("get", 0, 0, 0)
}

func TestCallersLeavingEndsTheWalkWhatThePolicySaysOfAborts(t *testing.T) {
	for _, pass := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, Policy{PassAborts: pass})
			r.everywhere("x")
			r.a.hang()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _, err := r.Get(ctx, abc)
			_ = wantFailure(t, err, storage.CodeFallbackAborted)
			if storage.Classify(err) != storage.ClassAbort {
				t.Fatalf("got %v", err)
			}
			r.wantCounts("get", 1, 0, 0)
		})
	}
}

func TestCandidateThatHangsIsPassedOverAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Policy{Timeout: 3 * time.Second})
		r.everywhere("x")
		r.a.hang()
		r.b.hang()
		began := time.Now()
		r.wantGet(abc, "x")
		if took := time.Since(began); took != 6*time.Second {
			t.Fatalf("it took %s", took)
		}
		r.c.hang()
		_, _, err := r.Get(t.Context(), abc)
		f := wantFailure(t, err, storage.CodeFallbackAllCandidatesFailed)
		if storage.CodeOf(f.CandidateErrors[2].Err) != storage.CodeBackendTimeout {
			t.Fatalf("got %v", err)
		}
		began = time.Now()
		if _, err := r.Stat(t.Context(), ladderOf(ladderOf("memory://a/k", "memory://b/k"), "memory://c/k"), storage.StatOptions{}); err == nil {
			t.Fatal("nobody answered, and yet there is an answer")
		}
		if took := time.Since(began); took != 9*time.Second {
			t.Fatalf("a ladder in a ladder was given %s", took)
		}
	})
}

func TestParallelReadTakesTheFastestAndLetsTheOthersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Policy{Walk: WalkParallel})
		r.everywhere("x")
		var cause error
		r.a.set(func(ctx context.Context, _ string) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		})
		r.b.set(func(context.Context, string) error { time.Sleep(5 * time.Millisecond); return nil })
		r.c.set(func(context.Context, string) error {
			time.Sleep(2 * time.Millisecond)
			return refusal(storage.CodeAccessDenied)
		})
		began := time.Now()
		if info := r.wantGet(abc, "x"); info.ServedBy != "memory://b/k" || time.Since(began) != 5*time.Millisecond {
			t.Fatalf("got %+v after %s", info, time.Since(began))
		}
		synctest.Wait()
		if !errors.Is(cause, storage.CauseLostRace) {
			t.Fatalf("the loser saw %v", cause)
		}
		r.wantCounts("get", 1, 1, 1)
	})
}

func TestParallelReadWithoutAWinnerSurfacesWhatAllAgreeOn(t *testing.T) {
	r := newRig(t, Policy{Walk: WalkParallel})
	for _, f := range []*fake{r.a, r.b, r.c} {
		f.fail(refusal(storage.CodeAccessDenied))
	}
	if _, _, err := r.Get(t.Context(), abc); storage.CodeOf(err) != storage.CodeAccessDenied {
		t.Fatalf("got %v", err)
	}
	r.b.fail(unavailable())
	_, _, err := r.Get(t.Context(), abc)
	_ = wantFailure(t, err, storage.CodeFallbackAllCandidatesFailed)
}

func TestEachCallAsksEveryCandidateOnceAndRemembersNothing(t *testing.T) {
	r := newRig(t, Policy{})
	r.everywhere("x")
	r.a.fail(unavailable())
	l, err := NewStorage(ladderOf("memory://a", "memory://b"), Options{Resolver: r.stores})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 5 {
		if _, _, err := storage.Get(t.Context(), l, "k"); err != nil {
			t.Fatal(err)
		}
	}
	r.wantCounts("get", 5, 5, 0)
	r.wantCounts("stat", 0, 0, 0)
	r.a.fail(nil)
	if _, _, err := storage.Get(t.Context(), l, "k"); err != nil || r.b.count("get") != 5 {
		t.Fatalf("the first was not asked again: %v", err)
	}
}

func TestPoliciesThatMeanNothingAreRefused(t *testing.T) {
	for name, p := range map[string]Policy{
		"walk": {Walk: "zigzag"}, "errorClass": {ErrorClass: "all"}, "writeMode": {WriteMode: "some"}, "deleteMode": {DeleteMode: "none"},
		"listMode": {ListMode: "sum"}, "listFailureMode": {ListFailureMode: "ignore"}, "maxCandidates": {MaxCandidates: 65},
		"maxDepth": {MaxDepth: 9}, "timeout": {Timeout: -1},
	} {
		if _, err := New(Options{Policy: p, Resolver: stores{}}); err == nil || !contains(err.Error(), "policy."+name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if p, err := (Policy{}).complete(); err != nil || p.MaxCandidates != 16 || p.MaxDepth != 4 || p.WriteMode != WriteAll || p.Walk != WalkSequential {
		t.Errorf("got %+v, %v", p, err)
	}
}

package muxengine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

func TestCooldownDoublesWithFailuresInARowUpToItsLimit(t *testing.T) {
	for _, tc := range []struct {
		before             int64
		base, limit, after time.Duration
		want               time.Duration
	}{
		{0, time.Second, 64 * time.Second, 0, time.Second},
		{1, time.Second, 64 * time.Second, 0, 2 * time.Second},
		{6, time.Second, time.Hour, 0, 64 * time.Second},
		{7, time.Second, time.Hour, 0, 64 * time.Second},
		{100, time.Second, time.Hour, 0, 64 * time.Second},
		{5, time.Second, 5 * time.Second, 0, 5 * time.Second},
		{0, time.Second, 64 * time.Second, 10 * time.Second, 10 * time.Second},
		{0, time.Second, 64 * time.Second, time.Hour, 64 * time.Second},
		{3, time.Second, 64 * time.Second, 2 * time.Second, 8 * time.Second},
	} {
		if got := cooldown(tc.before, tc.base, tc.limit, tc.after); got != tc.want {
			t.Errorf("cooldown(%d, %s, %s, %s) = %s, want %s", tc.before, tc.base, tc.limit, tc.after, got, tc.want)
		}
	}
}

func TestBackendStaysDownForTwiceAsLongAfterItsSecondFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 1, 1)
		time.Sleep(999 * time.Millisecond)
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 1, 2)
		time.Sleep(time.Millisecond)
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 2, 3)
		time.Sleep(1999 * time.Millisecond)
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 2, 4)
		time.Sleep(time.Millisecond)
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 3, 5)
		if s := r.member("a"); s.ConsecutiveFailures != 3 || s.State != StateDown {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestSuccessfulProbeBringsTheBackendBackAndTellsForHowLongItWasDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		r.mustGet("k", "hello")
		down := r.told(TopicBackendDown)
		if len(down) != 1 || down[0].Name != "a" || down[0].Code != storage.CodeUnavailable || down[0].Cause == nil {
			t.Fatalf("got %+v", down)
		}
		r.stores[0].fail(nil)
		time.Sleep(3 * time.Second)
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 2, 1)
		up := r.told(TopicBackendRecovered)
		if len(up) != 1 || up[0].Name != "a" || up[0].DownFor != 3*time.Second {
			t.Fatalf("got %+v", up)
		}
		if s := r.member("a"); s.State != StateUp || s.ConsecutiveFailures != 0 {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestSemanticAnswerToAProbeIsASignOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.stores[0].fail(unavailable())
		_, _ = r.get("k")
		r.stores[0].fail(nil)
		time.Sleep(time.Second)
		_, err := r.get("k")
		wantCode(t, err, storage.CodeKeyNotFound)
		if s := r.member("a"); s.State != StateUp {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestBurstOfFailuresCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		r.stores[0].set(func(context.Context, string, string) error {
			time.Sleep(time.Millisecond)
			return unavailable()
		})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { r.mustGet("k", "hello") })
		}
		wg.Wait()
		if s := r.member("a"); s.ConsecutiveFailures != 1 || s.Errors != 100 {
			t.Fatalf("got %+v", s)
		}
		if n := len(r.told(TopicBackendDown)); n != 1 {
			t.Fatalf("%d events", n)
		}
	})
}

func TestResultsOfAttemptsBegunBeforeAChangeAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		r.everywhere("k", "hello")
		late := make(chan struct{})
		r.stores[0].set(func(context.Context, string, string) error { <-late; return unavailable() })
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = r.get("k") })
		synctest.Wait()
		r.stores[0].fail(unavailable())
		_, _ = r.get("k")
		r.stores[0].fail(nil)
		time.Sleep(time.Second)
		r.mustGet("k", "hello")
		close(late)
		wg.Wait()
		if s := r.member("a"); s.State != StateUp || s.ConsecutiveFailures != 0 {
			t.Fatalf("a failure from before took it down again: %+v", s)
		}
	})
}

func TestExactlyOneRequestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		r.mustGet("k", "hello")
		time.Sleep(time.Second)
		r.stores[0].set(func(context.Context, string, string) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { r.mustGet("k", "hello") })
		}
		wg.Wait()
		wantCounts(t, r.stores, "get", 2, 20)
	})
}

func TestProbeThatTheCallerGivesUpFreesItsSlotWithoutVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		r.mustGet("k", "hello")
		time.Sleep(time.Second)
		r.stores[0].hang()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := r.GetStream(ctx, "k", storage.GetOptions{})
		wantCode(t, err, storage.CodeBackendAborted)
		if s := r.member("a"); s.ConsecutiveFailures != 1 || s.Aborts != 1 {
			t.Fatalf("got %+v", s)
		}
		r.stores[0].fail(nil)
		r.mustGet("k", "hello")
		if s := r.member("a"); s.State != StateUp {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestWriteIsPrecededByAStatSoThatNoUploadIsTheExperiment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.stores[0].fail(unavailable())
		r.mustPut("k", "one")
		time.Sleep(time.Second)
		r.mustPut("k", "two")
		wantCounts(t, r.stores, "set", 1, 2)
		wantCounts(t, r.stores, "probe", 1, 0)
		r.stores[0].fail(nil)
		time.Sleep(2 * time.Second)
		r.mustPut("k", "three")
		wantCounts(t, r.stores, "set", 2, 2)
		wantCounts(t, r.stores, "probe", 2, 0)
		if r.stores[0].content("k") != "three" {
			t.Fatal("the write did not go to the backend that is back")
		}
	})
}

func TestStandbyThatIsDueIsProbedThoughNoRequestNeedsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3)
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		r.stores[1].fail(unavailable())
		r.mustGet("k", "hello")
		r.stores[0].fail(nil)
		r.stores[1].fail(nil)
		time.Sleep(time.Second)
		r.mustGet("k", "hello")
		synctest.Wait()
		if s := r.member("b"); s.State != StateUp {
			t.Fatalf("got %+v", s)
		}
		wantCounts(t, r.stores, "probe", 0, 1, 0)
	})
}

func TestAllDownFailsAtOnceByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		for _, f := range r.stores {
			f.fail(unavailable())
		}
		_, _ = r.get("k")
		_, err := r.get("k")
		wantCode(t, err, storage.CodeAllBackendsDown)
		var e *storage.Error
		if !errors.As(err, &e) || e.AttemptCount != 0 || e.RetryAfter != time.Second {
			t.Fatalf("got %#v", e)
		}
		wantCounts(t, r.stores, "get", 1, 1)
	})
}

func TestAllDownTriesTheOneThatRecoversFirstWithOneRequestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, tryWhenDown)
		r.everywhere("k", "hello")
		for _, f := range r.stores {
			f.set(func(context.Context, string, string) error {
				time.Sleep(10 * time.Millisecond)
				return unavailable()
			})
		}
		_, _ = r.get("k")
		r.stores[0].set(func(context.Context, string, string) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		var wg sync.WaitGroup
		var mu sync.Mutex
		served := 0
		for range 10 {
			wg.Go(func() {
				if _, err := r.get("k"); err == nil {
					mu.Lock()
					served++
					mu.Unlock()
				} else {
					wantCode(t, err, storage.CodeAllBackendsDown)
				}
			})
		}
		wg.Wait()
		if served != 1 {
			t.Fatalf("%d requests were served", served)
		}
		wantCounts(t, r.stores, "get", 2, 1)
		r.mustGet("k", "hello")
	})
}

func TestAllDownTriesAWriteOnlyAfterAStat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, tryWhenDown)
		r.stores[0].fail(unavailable())
		_ = r.put("k", "one")
		wantCode(t, r.put("k", "two"), storage.CodeAllBackendsDown)
		wantCounts(t, r.stores, "set", 1)
		wantCounts(t, r.stores, "probe", 1)
		r.stores[0].fail(nil)
		r.mustPut("k", "three")
	})
}

func TestRetryAfterOfTheStoreOutlastsTheCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		r.stores[0].fail(&storage.Error{Code: storage.CodeThrottled, Status: 429, RetryAfter: 20 * time.Second})
		r.mustGet("k", "hello")
		time.Sleep(19 * time.Second)
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 1, 2)
		time.Sleep(time.Second)
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 2, 3)
	})
}

func TestNoSpaceTakesABackendDownForWritesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.stores[0].set(func(_ context.Context, op, _ string) error {
			if op == "set" {
				return storage.Errorf(storage.CodeNoSpace, "", "full")
			}
			return nil
		})
		r.mustPut("k", "one")
		r.stores[0].put("old", "data", nil)
		r.mustGet("old", "data")
		wantCounts(t, r.stores, "get", 1, 0)
		if s := r.member("a"); s.State != StateUp || !s.WritesDown || s.LastError.Code != storage.CodeNoSpace {
			t.Fatalf("got %+v", s)
		}
		r.mustPut("k", "two")
		wantCounts(t, r.stores, "set", 1, 2)
		if err := r.Delete(t.Context(), "old"); err != nil || r.stores[0].has("old") {
			t.Fatal("a delete must go through: it makes space")
		}
		r.stores[0].fail(nil)
		time.Sleep(time.Second)
		r.mustPut("k", "three")
		if s := r.member("a"); s.WritesDown || r.stores[0].content("k") != "three" {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestActiveCheckTakesABackendDownAndOnlyACheckBringsItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withMembers(func(_ int, m *Member) { m.HealthCheck = HealthCheck{Interval: 10 * time.Second, Timeout: time.Second} }))
		r.everywhere("k", "hello")
		time.Sleep(11 * time.Second)
		if s := r.member("a"); s.State != StateUp || s.Hits+s.Misses+s.Errors != 0 {
			t.Fatalf("a missing key is healthy, and checks move no figures: %+v", s)
		}
		r.stores[0].set(func(_ context.Context, op, key string) error {
			if key == storage.ProbeKey {
				return storage.Errorf(storage.CodeAccessDenied, "", "bad credentials")
			}
			return nil
		})
		time.Sleep(10 * time.Second)
		down := r.told(TopicBackendDown)
		if len(down) != 1 || down[0].Code != storage.CodeHealthcheckFailed || !errors.Is(down[0].Cause, &storage.Error{Code: storage.CodeHealthcheckFailed}) {
			t.Fatalf("got %+v", down)
		}
		time.Sleep(5 * time.Second)
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 0, 1)
		r.stores[0].fail(nil)
		time.Sleep(5 * time.Second)
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 1, 1)
		if n := len(r.told(TopicBackendRecovered)); n != 1 {
			t.Fatalf("%d events", n)
		}
	})
}

func TestCheckThatHangsFailsAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, withMembers(func(_ int, m *Member) { m.HealthCheck = HealthCheck{Interval: 10 * time.Second, Timeout: time.Second} }))
		r.stores[0].hang()
		time.Sleep(11*time.Second + time.Millisecond)
		if s := r.member("a"); s.State != StateDown {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestStoresOwnCheckIsUsedWhereItHasOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checked atomic.Int64
		r := newRig(t, 1, withMembers(func(_ int, m *Member) {
			m.Storage = checkedStore{m.Storage, &checked}
			m.HealthCheck.Interval = time.Second
		}))
		time.Sleep(3*time.Second + time.Millisecond)
		wantCounts(t, r.stores, "stat", 0)
		if checked.Load() != 3 {
			t.Fatalf("%d checks", checked.Load())
		}
	})
}

type checkedStore struct {
	storage.Storage
	checked *atomic.Int64
}

func (s checkedStore) Check(context.Context) error { s.checked.Add(1); return nil }

func TestCloseEndsActiveChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, withMembers(func(_ int, m *Member) { m.HealthCheck.Interval = time.Second }))
		time.Sleep(time.Second + time.Millisecond)
		r.Close()
		before := r.stores[0].count("stat")
		time.Sleep(time.Minute)
		if before != 1 || r.stores[0].count("stat") != before {
			t.Fatalf("%d checks before, %d after", before, r.stores[0].count("stat"))
		}
	})
}

func TestFailureOfOneBackendLeavesTheOthersUntouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.stores[0].fail(unavailable())
		ctx, cancel := context.WithCancel(t.Context())
		r.stores[0].set(func(context.Context, string, string) error { cancel(); return unavailable() })
		_, _ = r.GetStream(ctx, "k", storage.GetOptions{})
		if s := r.member("b"); s.State != StateUp || s.ConsecutiveFailures != 0 || s.Errors != 0 {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestBackendThatNobodyAsksIsProbedOnceItsCooldownIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, func(_ *Config, opts *Options) { opts.IdleProbe = time.Second })
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		r.mustGet("k", "hello")
		time.Sleep(1999 * time.Millisecond)
		wantCounts(t, r.stores, "stat", 0, 0)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		wantCounts(t, r.stores, "stat", 1, 0)
		if s := r.member("a"); s.State != StateDown || s.ConsecutiveFailures != 2 {
			t.Fatalf("after a probe that failed: %+v", s)
		}
		r.stores[0].fail(nil)
		time.Sleep(3 * time.Second) // a cooldown of two seconds, and one more
		synctest.Wait()
		if s := r.member("a"); s.State != StateUp {
			t.Fatalf("after a probe that succeeded: %+v", s)
		}
		time.Sleep(time.Hour)
		wantCounts(t, r.stores, "stat", 2, 0)
	})
}

func TestWriteWaitsNoLongerForAProbeThanForItsPlace(t *testing.T) {
	for _, mode := range []Mode{ModeFailover, ModeMirror} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 2, inMode(mode), withTimeout(10*time.Second))
			r.stores[0].hang()
			r.mustPut("k", "x")
			time.Sleep(time.Minute)
			began := time.Now()
			r.mustPut("k", "x")
			if d := time.Since(began); d != writeWait {
				t.Fatalf("%s: it took %s", mode, d)
			}
			time.Sleep(time.Minute)
			if m := r.member("a"); m.ConsecutiveFailures != 2 {
				t.Fatalf("%s: the probe has its whole time: got %+v", mode, m)
			}
			r.stores[0].fail(nil)
			r.mustPut("k", "x")
			if m := r.member("a"); m.State != StateUp || r.stores[0].content("k") != "x" {
				t.Fatalf("%s: got %+v", mode, m)
			}
		})
	}
}

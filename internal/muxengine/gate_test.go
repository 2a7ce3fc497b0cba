package muxengine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

func limited(n int) option {
	return withMembers(func(_ int, m *Member) { m.MaxInFlight = n })
}

func TestReadGoesElsewhereWhileABackendIsAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, limited(1))
		r.everywhere("k", "hello")
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil || obj.ServedBy != "a" {
			t.Fatal(err)
		}
		if s := r.member("a"); s.InFlight != 1 {
			t.Fatalf("an open body must count: %+v", s)
		}
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 1, 1)
		_ = obj.Body.Close()
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 2, 1)
		if s := r.member("a"); s.State != StateUp || s.Errors != 0 {
			t.Fatalf("got %+v", s)
		}
		if n := len(r.told(TopicFailover)); n != 0 {
			t.Fatalf("%d failovers", n)
		}
	})
}

func TestReadIsTurnedAwayWhileEveryBackendIsAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, limited(1))
		r.everywhere("k", "hello")
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = r.get("k")
		wantCode(t, err, storage.CodeThrottled)
		_ = obj.Body.Close()
	})
}

func TestWriteWaitsUpToASecondForABackendAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, limited(1))
		var free time.Duration
		r.stores[0].set(func(context.Context, string, string) error { time.Sleep(free); return nil })
		for _, tc := range []struct {
			busy time.Duration
			code storage.Code
		}{{900 * time.Millisecond, ""}, {3 * time.Second, storage.CodeThrottled}} {
			free = tc.busy
			var wg sync.WaitGroup
			wg.Go(func() { r.mustPut("first", "x") })
			synctest.Wait()
			began := time.Now()
			err := r.put("second", "x")
			wantCode(t, err, tc.code)
			if d := time.Since(began); tc.code != "" && d != time.Second {
				t.Fatalf("it waited for %s", d)
			}
			wg.Wait()
		}
		wantCounts(t, r.stores, "set", 3, 0)
	})
}

func TestEveryWaiterGetsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, limited(2))
		r.stores[0].set(func(context.Context, string, string) error { time.Sleep(100 * time.Millisecond); return nil })
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { r.mustPut("k", "x") })
		}
		wg.Wait()
		wantCounts(t, r.stores, "set", 20)
	})
}

func TestWriteThatHasWaitedIsNotSentToABackendThatWentDownMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, limited(1))
		fails := make(chan struct{})
		r.stores[0].set(func(context.Context, string, string) error {
			<-fails
			return unavailable()
		})
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- r.put("k", "x") }()
			synctest.Wait()
		}
		close(fails)
		if err := errors.Join(<-done, <-done); err != nil {
			t.Fatal(err)
		}
		wantCounts(t, r.stores, "set", 1, 2)
	})
}

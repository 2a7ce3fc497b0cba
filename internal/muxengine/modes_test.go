package muxengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// seeded makes a rig's choices repeatable.
func seeded(seed uint64) option {
	return func(_ *Config, o *Options) {
		var mu sync.Mutex
		source := rand.New(rand.NewPCG(seed, seed))
		o.Rand = func() uint64 {
			mu.Lock()
			defer mu.Unlock()
			return source.Uint64()
		}
	}
}

func gets(stores []*fake) []int {
	var list []int
	for _, f := range stores {
		list = append(list, f.count("get"))
	}
	return list
}

func TestRoundRobinDistributesEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeRoundRobin))
		r.everywhere("k", "hello")
		for range 9 {
			r.mustGet("k", "hello")
		}
		wantCounts(t, r.stores, "get", 3, 3, 3)
	})
}

func TestRoundRobinSkipsABackendThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeRoundRobin))
		r.everywhere("k", "hello")
		r.down(1)
		before := gets(r.stores)
		for range 4 {
			r.mustGet("k", "hello")
		}
		after := gets(r.stores)
		if after[0]-before[0] != 2 || after[1] != before[1] || after[2]-before[2] != 2 {
			t.Fatalf("before %v, after %v", before, after)
		}
	})
}

// down takes the i-th backend down through a failure of its own.
func (r *rig) down(i int) {
	r.t.Helper()
	f := r.stores[i]
	f.fail(unavailable())
	for range 100 {
		_, _ = r.get("k")
		if r.member(f.name).State == StateDown {
			f.fail(nil)
			return
		}
	}
	r.t.Fatalf("%s does not go down", f.name)
}

func TestRoundRobinWithNobodyUpReportsAllBackendsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, inMode(ModeRoundRobin))
		for _, f := range r.stores {
			f.fail(unavailable())
		}
		_, _ = r.get("k")
		_, err := r.get("k")
		wantCode(t, err, storage.CodeAllBackendsDown)
	})
}

func TestWeightedDistributesByWeightUnderSeveralSeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(5) {
			r := newRig(t, 3, inMode(ModeWeighted), withWeights(1, 3, 6), seeded(seed))
			r.everywhere("k", "hello")
			for range 1000 {
				r.mustGet("k", "hello")
			}
			for i, share := range []int{100, 300, 600} {
				if got := r.stores[i].count("get"); got < share-50 || got > share+50 {
					t.Errorf("seed %d: %s got %d of 1000, want %d", seed, r.stores[i].name, got, share)
				}
			}
		}
	})
}

func TestAliasTableIsExactOverAMillionDraws(t *testing.T) {
	for _, weights := range [][]int{{1, 3, 6}, {1}, {5, 5}, {1, 0, 1}, {1, 1000}, {7, 1, 1, 1, 90, 0, 13}} {
		table := newAliasTable(weights)
		source := rand.New(rand.NewPCG(1, 2))
		counts := make([]int, len(weights))
		const draws = 1_000_000
		for range draws {
			counts[table.draw(source.Uint64())]++
		}
		total := 0
		for _, w := range weights {
			total += w
		}
		for i, w := range weights {
			got, want := 100*float64(counts[i])/draws, 100*float64(w)/float64(total)
			if got < want-0.2 || got > want+0.2 || w == 0 && counts[i] > 0 {
				t.Errorf("weights %v: index %d got %.3f %%, want %.3f %%", weights, i, got, want)
			}
		}
	}
}

func TestSetWeightShiftsTheDistribution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share := func(change func(*rig)) int {
			r := newRig(t, 2, inMode(ModeWeighted), withWeights(15, 5), seeded(7))
			r.everywhere("k", "hello")
			change(r)
			for range 1000 {
				r.mustGet("k", "hello")
			}
			return r.stores[1].count("get")
		}
		before := share(func(*rig) {})
		after := share(func(r *rig) {
			if err := r.SetWeight("b", 15); err != nil {
				t.Fatal(err)
			}
			if e := r.told(TopicWeightChanged); len(e) != 1 || e[0].Name != "b" || e[0].FromWeight != 5 || e[0].ToWeight != 15 {
				t.Fatalf("got %+v", e)
			}
			wantCode(t, r.SetWeight("b", -1), storage.CodeInvalidWeight)
		})
		if before < 200 || before > 300 || after < 450 || after > 550 {
			t.Fatalf("b got %d before and %d after", before, after)
		}
	})
}

func TestWeightZeroIsNeverChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeWeighted), withWeights(1, 0, 2), tryWhenDown)
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		r.stores[2].fail(unavailable())
		for range 20 {
			_, err := r.get("k")
			wantCode(t, err, storage.CodeAllBackendsDown)
			time.Sleep(time.Second)
		}
		if n := r.stores[1].count("get"); n != 0 {
			t.Fatalf("%d gets", n)
		}
	})
}

func TestWeightedTriesEachBackendOnceBeforeItGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(20) {
			r := newRig(t, 4, inMode(ModeWeighted), withWeights(1, 1000, 1, 1), seeded(seed))
			for _, f := range r.stores {
				f.fail(unavailable())
			}
			_, err := r.get("k")
			wantCode(t, err, storage.CodeAllBackendsDown)
			wantCounts(t, r.stores, "get", 1, 1, 1, 1)
		}
	})
}

func TestFNV1aMatchesItsPublishedVectors(t *testing.T) {
	for key, want := range map[string]uint32{
		"": 0x811c9dc5, "a": 0xe40c292c, "b": 0xe70c2de5, "c": 0xe60c2c52, "foobar": 0xbf9cf968, "é": fnvOf("\xc3\xa9"),
	} {
		if got := fnv1a(key); got != want {
			t.Errorf("%q: got %#x, want %#x", key, got, want)
		}
	}
}

// fnvOf spells the algorithm out, byte by byte.
func fnvOf(s string) uint32 {
	h := uint64(0x811c9dc5)
	for _, b := range []byte(s) {
		h = (h ^ uint64(b)) * 0x01000193 & 0xffffffff
	}
	return uint32(h)
}

func TestStickyKeyStaysWithItsBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, hash := range []StickyHash{StickyFNV1aModulo, StickyRendezvous} {
			r := newRig(t, 3, inMode(ModeStickyByKey), func(c *Config, _ *Options) { c.StickyHash = hash })
			r.everywhere("alpha", "x")
			for range 100 {
				r.mustGet("alpha", "x")
			}
			if got := gets(r.stores); slices.Max(got) != 100 {
				t.Fatalf("%s: got %v", hash, got)
			}
			if hash == StickyFNV1aModulo && r.stores[fnv1a("alpha")%3].count("get") != 100 {
				t.Fatal("the hash does not name the backend")
			}
			used := map[int]bool{}
			for i := range 100 {
				r.mustPut(fmt.Sprint("key", i), "x")
			}
			for i, f := range r.stores {
				used[i] = f.count("set") > 10
			}
			if !used[0] || !used[1] || !used[2] {
				t.Fatalf("%s: the keys are not spread: %v", hash, used)
			}
		}
	})
}

func TestStickyKeyOfABackendThatIsDownMovesAndStaysThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeStickyByKey))
		r.everywhere("alpha", "x")
		home := int(fnv1a("alpha") % 3)
		r.stores[home].fail(unavailable())
		r.mustGet("alpha", "x")
		before := gets(r.stores)
		for range 10 {
			r.mustGet("alpha", "x")
		}
		moved := 0
		for i, n := range gets(r.stores) {
			if n-before[i] == 10 {
				moved++
			}
		}
		if moved != 1 || r.stores[home].count("get") != before[home] {
			t.Fatalf("before %v, after %v", before, gets(r.stores))
		}
	})
}

func TestStickyHashCanBeReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeStickyByKey), func(_ *Config, o *Options) {
			o.Hash = func(key string) uint32 { return uint32(len(key)) }
		})
		r.mustPut("xx", "x")
		r.mustPut("xxxx", "x")
		wantCounts(t, r.stores, "set", 0, 1, 1)
	})
}

func TestRendezvousMovesOnlyTheKeysOfTheBackendThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, inMode(ModeStickyByKey), func(c *Config, _ *Options) { c.StickyHash = StickyRendezvous })
		home := map[string]string{}
		for i := range 200 {
			key := fmt.Sprint("key", i)
			info, err := storage.Set(t.Context(), r.Mux, key, []byte("x"), storage.SetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			home[key] = info.ServedBy
		}
		if err := r.RemoveBackend("b"); err != nil {
			t.Fatal(err)
		}
		for key, was := range home {
			info, err := storage.Set(t.Context(), r.Mux, key, []byte("x"), storage.SetOptions{})
			if err != nil || was != "b" && info.ServedBy != was {
				t.Fatalf("%s moved from %s to %s, %v", key, was, info.ServedBy, err)
			}
		}
	})
}

func TestStickyListingsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeStickyByKey))
		for range 6 {
			if _, err := r.List(t.Context(), storage.ListOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		wantCounts(t, r.stores, "list", 2, 2, 2)
	})
}

func TestShieldReadsFromAMirrorWhenItsOriginHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeShield), withTimeout(time.Second))
		r.everywhere("k", "hello")
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 1, 0, 0)
		r.stores[0].hang()
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 2, 1, 0)
	})
}

func TestShieldWriteSucceedsWithItsOriginAndNamesTheMirrorsThatMissedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeShield))
		r.stores[1].fail(unavailable())
		r.mustPut("k", "one")
		events := r.told(TopicFanoutPartial)
		if len(events) != 1 || !slices.Equal(events[0].Failed, []string{"b"}) || len(events[0].Causes) != 1 || events[0].Mode != ModeShield || len(events[0].Skipped) != 0 {
			t.Fatalf("got %+v", events)
		}
		r.mustPut("k", "two")
		events = r.told(TopicFanoutPartial)
		if len(events) != 2 || !slices.Equal(events[1].Skipped, []string{"b"}) || !slices.Equal(events[1].Failed, []string{"b"}) {
			t.Fatalf("got %+v", events)
		}
		wantCounts(t, r.stores, "set", 2, 1, 2)
		if r.Stats().TotalFanoutPartials != 2 {
			t.Fatalf("got %+v", r.Stats())
		}
	})
}

func TestShieldWriteThatMissedAMirrorFailsWhereThatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, inMode(ModeShield), func(c *Config, _ *Options) { c.OnFanoutPartial = FanoutPartialFail })
		r.stores[1].fail(unavailable())
		err := r.put("k", "x")
		wantCode(t, err, storage.CodeWriteFanoutPartial)
		if storage.Classify(err) != storage.ClassSemantic || !r.stores[0].has("k") || len(r.told(TopicFanoutPartial)) != 1 {
			t.Fatalf("got %v", err)
		}
	})
}

func TestShieldWriteFailsWithItsOriginWhateverTheMirrorsDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, inMode(ModeShield))
		r.stores[0].fail(storage.Errorf(storage.CodeAccessDenied, "", "no"))
		wantCode(t, r.put("k", "x"), storage.CodeAccessDenied)
		r.stores[0].fail(unavailable())
		err := r.put("k", "x")
		wantCode(t, err, storage.CodeAllBackendsDown)
		var e, cause *storage.Error
		if !errors.As(err, &e) || !errors.As(e.Cause, &cause) || cause.Backend != "a" || cause.Status != 503 {
			t.Fatalf("got %v", err)
		}
		wantCounts(t, r.stores, "set", 2, 2)
		wantCode(t, r.put("k", "x"), storage.CodeAllBackendsDown)
		wantCounts(t, r.stores, "set", 2, 2)
		if n := len(r.told(TopicFanoutPartial)); n != 0 {
			t.Fatalf("%d events of a write that failed", n)
		}
	})
}

func TestShieldOriginIsAskedBeforeAWriteOnceItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, inMode(ModeShield))
		r.stores[0].fail(unavailable())
		_ = r.put("k", "x")
		time.Sleep(time.Second)
		wantCode(t, r.put("k", "x"), storage.CodeAllBackendsDown)
		wantCounts(t, r.stores, "set", 1, 1)
		wantCounts(t, r.stores, "probe", 1, 0)
		r.stores[0].fail(nil)
		time.Sleep(2 * time.Second)
		r.mustPut("k", "x")
	})
}

func TestMirrorReadTakesTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror))
		r.everywhere("k", "x")
		var causes sync.Map
		wait := func(f *fake, d time.Duration) {
			f.set(func(ctx context.Context, _, _ string) error {
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					causes.Store(f.name, context.Cause(ctx))
					return ctx.Err()
				}
			})
		}
		wait(r.stores[0], 30*time.Millisecond)
		wait(r.stores[1], 5*time.Millisecond)
		wait(r.stores[2], time.Hour)
		began := time.Now()
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil || obj.ServedBy != "b" || time.Since(began) != 5*time.Millisecond {
			t.Fatalf("got %+v, %v after %s", obj, err, time.Since(began))
		}
		synctest.Wait()
		if cause, _ := causes.Load("c"); !errors.Is(cause.(error), storage.CauseLostRace) {
			t.Fatalf("the loser saw %v", cause)
		}
		_ = obj.Body.Close()
		for _, m := range r.Stats().Members {
			if m.State != StateUp || m.InFlight != 0 || m.Errors != 0 {
				t.Fatalf("got %+v", m)
			}
		}
	})
}

func TestMirrorLosersLeaveNoBodyOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror))
		r.everywhere("k", "hello")
		for range 20 {
			r.mustGet("k", "hello")
		}
		synctest.Wait()
		for _, f := range r.stores {
			if f.openBodies() != 0 {
				t.Fatalf("%s has %d bodies open", f.name, f.openBodies())
			}
		}
		for _, m := range r.Stats().Members {
			if m.InFlight != 0 {
				t.Fatalf("got %+v", m)
			}
		}
	})
}

func TestMirrorWriteReachesAllAndNamesTheOneThatMissedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror))
		r.stores[2].fail(unavailable())
		r.mustPut("k", "x")
		events := r.told(TopicFanoutPartial)
		if len(events) != 1 || !slices.Equal(events[0].Failed, []string{"c"}) {
			t.Fatalf("got %+v", events)
		}
		if r.stores[0].content("k") != "x" || r.stores[1].content("k") != "x" {
			t.Fatal("the write did not reach the others")
		}
	})
}

func TestMirrorWriteThatNobodyTookReportsAllBackendsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, inMode(ModeMirror))
		for _, f := range r.stores {
			f.fail(unavailable())
		}
		wantCode(t, r.put("k", "x"), storage.CodeAllBackendsDown)
		if n := len(r.told(TopicFanoutPartial)); n != 0 {
			t.Fatalf("%d events", n)
		}
	})
}

func TestMirrorReadThatEveryPeerRejectsCarriesAllTheirErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror))
		for i, f := range r.stores {
			f.fail(fmt.Errorf("failure %d", i))
		}
		_, err := r.get("k")
		wantCode(t, err, storage.CodeAllBackendsDown)
		var e *storage.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		all, ok := e.Cause.(interface{ Unwrap() []error })
		if !ok || len(all.Unwrap()) != 3 {
			t.Fatalf("got %v", e.Cause)
		}
	})
}

func TestRaceJudgesRefusalsTogether(t *testing.T) {
	missing := notFound("k")
	for name, tc := range map[string]struct {
		keyspace Keyspace
		first    error
		second   error
		down     bool
		want     storage.Code
	}{
		"not found beats no pending success": {first: missing, want: ""},
		"not found by all":                   {first: missing, second: missing, want: storage.CodeKeyNotFound},
		"all semantic, the first counts":     {first: storage.Errorf(storage.CodeAccessDenied, "", ""), second: missing, want: storage.CodeAccessDenied},
		"a mix is an outage":                 {first: missing, second: unavailable(), want: storage.CodeAllBackendsDown},
		"a failed precondition decides":      {first: storage.Errorf(storage.CodePreconditionFailed, "", ""), want: storage.CodePreconditionFailed},
		"who was skipped does not count":     {first: missing, second: unavailable(), down: true, want: storage.CodeKeyNotFound},
		"who was skipped counts in spread":   {keyspace: KeyspaceSpread, first: missing, second: unavailable(), down: true, want: storage.CodeAllBackendsDown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 2, inMode(ModeMirror), func(c *Config, _ *Options) { c.Keyspace = tc.keyspace })
				r.everywhere("k", "x")
				delay := func(f *fake, err error, d time.Duration) {
					f.set(func(ctx context.Context, _, _ string) error { time.Sleep(d); return err })
				}
				if tc.down {
					r.down(1)
				}
				delay(r.stores[0], tc.first, time.Millisecond)
				delay(r.stores[1], tc.second, 2*time.Millisecond)
				_, err := r.get("k")
				wantCode(t, err, tc.want)
				synctest.Wait()
				time.Sleep(time.Second)
			})
		})
	}
}

func TestConditionalFanOutLetsTheFirstMemberArbitrate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror))
		r.stores[0].put("k", "there", nil)
		create := storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}}
		_, err := r.SetStream(t.Context(), "k", once("x"), create)
		wantCode(t, err, storage.CodePreconditionFailed)
		wantCounts(t, r.stores, "set", 1, 0, 0)
		r.stores[1].put("new", "stale", nil)
		if _, err := r.SetStream(t.Context(), "new", once("fresh"), create); err != nil {
			t.Fatal(err)
		}
		for _, f := range r.stores {
			if f.content("new") != "fresh" {
				t.Fatalf("%s holds %q", f.name, f.content("new"))
			}
		}
	})
}

func TestConditionalWritesThroughAMirrorHaveOneWinner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror))
		var mu sync.Mutex
		won := 0
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				_, err := r.SetStream(t.Context(), "k", once(fmt.Sprint(i)), storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}})
				if err == nil {
					mu.Lock()
					won++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if won != 1 || r.stores[0].content("k") != r.stores[2].content("k") {
			t.Fatalf("%d winners", won)
		}
	})
}

// Each case makes a conditional write that a takes at once and b a second later,
// and meanwhile what then does; a is the arbiter, and decides what all have in the end.
func TestConditionalWritesReachTheOthersInTheOrderOfTheArbiter(t *testing.T) {
	onlyIf := func(tag string) storage.Conditions { return storage.Conditions{IfMatch: []string{tag}} }
	write := func(ctx context.Context, r *rig, content, tag string) (string, error) {
		info, err := r.SetStream(ctx, "k", once(content), storage.SetOptions{Conditions: onlyIf(tag)})
		return info.ETag, err
	}
	for name, test := range map[string]struct {
		then func(ctx context.Context, r *rig, tag string) error
		want string
	}{
		"an update": {func(ctx context.Context, r *rig, tag string) error {
			_, err := write(ctx, r, "third", tag)
			return err
		}, "third"},
		"an update of whatever is there": {func(ctx context.Context, r *rig, _ string) error {
			_, err := write(ctx, r, "third", "*")
			return err
		}, "third"},
		"two updates": {func(ctx context.Context, r *rig, tag string) error {
			tag, err := write(ctx, r, "between", tag)
			if err == nil {
				_, err = write(ctx, r, "third", tag)
			}
			return err
		}, "third"},
		"a delete": {func(ctx context.Context, r *rig, tag string) error {
			return r.DeleteIf(ctx, "k", onlyIf(tag))
		}, ""},
		"a delete and a new object": {func(ctx context.Context, r *rig, tag string) error {
			err := r.DeleteIf(ctx, "k", onlyIf(tag))
			if err == nil {
				_, err = r.SetStream(ctx, "k", once("third"), storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}})
			}
			return err
		}, "third"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, 3, inMode(ModeMirror))
			r.everywhere("k", "first")
			var comes atomic.Int32
			r.stores[1].readBody = func(_ context.Context, rd io.Reader) ([]byte, error) {
				if comes.Add(1) == 1 {
					time.Sleep(time.Second)
				}
				return io.ReadAll(rd)
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := write(t.Context(), r, "second", tagOf(t, r.stores[0])); err != nil {
					t.Errorf("%s: the second write: %v", name, err)
				}
			})
			time.Sleep(100 * time.Millisecond)
			if content := r.stores[0].content("k"); content != "second" {
				t.Fatalf("%s: a holds %q", name, content)
			}
			if err := test.then(t.Context(), r, tagOf(t, r.stores[0])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			wg.Wait()
			for _, f := range r.stores {
				if f.content("k") != test.want {
					t.Errorf("%s: %s holds %q", name, f.name, f.content("k"))
				}
			}
			if told := r.told(TopicFanoutPartial); len(told) != 0 {
				t.Errorf("%s: got %+v", name, told)
			}
		})
	}
}

// Beside the store that decides there is one that missed the write; it must not be
// taken for the decider's word that the write has been replaced.
func TestConditionalWritesReachTheOthersThoughPartOfTheArbiterMissedThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := []*fake{newFake("a"), newFake("b"), newFake("c")}
		inner := Config{Name: "inner", Mode: ModeMirror, Members: []Member{{Name: "a", Storage: stores[0]}, {Name: "b", Storage: stores[1]}}}
		r := newRig(t, 0, inMode(ModeMirror), func(cfg *Config, _ *Options) {
			cfg.Members = []Member{{Name: "inner", Mux: &inner}, {Name: "c", Storage: stores[2]}}
		})
		r.stores = stores
		r.everywhere("k", "first")
		stores[0].set(func(_ context.Context, op, _ string) error {
			if op == "stat" {
				time.Sleep(time.Second)
			}
			return nil
		})
		stores[1].set(func(_ context.Context, op, _ string) error {
			if op == "set" {
				return &storage.Error{Code: storage.CodeAccessDenied, Message: "read only"}
			}
			return nil
		})
		only := storage.SetOptions{Conditions: storage.Conditions{IfMatch: []string{tagOf(t, stores[2])}}}
		if _, err := r.SetStream(t.Context(), "k", once("second"), only); err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"second", "first", "second"} {
			if got := stores[i].content("k"); got != want {
				t.Errorf("%s holds %q, want %q", stores[i].name, got, want)
			}
		}
	})
}

// A key that somebody else writes all the time on one member is given up there in
// the end, and told.
func TestConditionalWritesAreGivenUpWhereOthersAreAlwaysFaster(t *testing.T) {
	r := newRig(t, 2, inMode(ModeMirror))
	r.everywhere("k", "first")
	writes := 0
	r.stores[1].set(func(_ context.Context, op, _ string) error {
		if op == "set" {
			writes++
			r.stores[1].put("k", fmt.Sprint("theirs ", writes), nil)
		}
		return nil
	})
	only := storage.SetOptions{Conditions: storage.Conditions{IfMatch: []string{tagOf(t, r.stores[0])}}}
	if _, err := r.SetStream(t.Context(), "k", once("second"), only); err != nil {
		t.Fatal(err)
	}
	told := r.told(TopicFanoutPartial)
	if writes != followTries || len(told) != 1 || !slices.Equal(told[0].Failed, []string{"b"}) {
		t.Fatalf("%d writes, told %+v", writes, told)
	}
}

// tagOf is the entity tag of k in f.
func tagOf(t *testing.T, f *fake) string {
	t.Helper()
	info, err := f.Stat(t.Context(), "k", storage.StatOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return info.ETag
}

func TestPagesOfAListingStayWithOneMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, mode := range []Mode{ModeRoundRobin, ModeMirror, ModeStickyByKey, ModeWeighted} {
			for _, shape := range []option{inMode(mode), nest(mode, ModeMirror)} {
				r := newRig(t, 4, withWeights(1, 1, 1, 1), inMode(mode), shape, withMembers(func(_ int, m *Member) { m.Weight = weightOf(1) }))
				for i := range 10 {
					r.everywhere(fmt.Sprint("key", i), "x")
				}
				pin := &storage.ListPin{}
				ctx := storage.WithListPin(t.Context(), pin)
				page, err := r.List(ctx, storage.ListOptions{Limit: 3})
				if err != nil || pin.Member == "" {
					t.Fatalf("%s: got %+v, %v", mode, page, err)
				}
				synctest.Wait()
				first := pin.Member
				var before []int
				for _, f := range r.stores {
					before = append(before, f.count("list"))
				}
				for page.Next != "" {
					if page, err = r.List(ctx, storage.ListOptions{Limit: 3, After: page.Next}); err != nil || pin.Member != first {
						t.Fatalf("%s: the listing moved from %s to %s, %v", mode, first, pin.Member, err)
					}
				}
				synctest.Wait()
				for i, f := range r.stores {
					want := before[i]
					if strings.HasSuffix(first, f.name) {
						want += 3
					}
					if f.count("list") != want {
						t.Fatalf("%s: %s was asked %d times, want %d", mode, f.name, f.count("list"), want)
					}
				}
				for _, f := range r.stores {
					if strings.HasSuffix(first, f.name) {
						f.fail(unavailable())
					}
				}
				if _, err = r.List(ctx, storage.ListOptions{Limit: 3}); err != nil || pin.Member == first {
					t.Fatalf("%s: got %v from %s", mode, err, pin.Member)
				}
			}
		}
	})
}

func TestConditionalDelete(t *testing.T) {
	for _, mode := range []Mode{ModeFailover, ModeMirror, ModeShield} {
		r := newRig(t, 2, inMode(mode))
		r.mustPut("k", "v")
		err := r.DeleteIf(t.Context(), "k", storage.Conditions{IfMatch: []string{"other"}})
		wantCode(t, err, storage.CodePreconditionFailed)
		if !r.stores[0].has("k") || modes[mode].write == fanOut && !r.stores[1].has("k") {
			t.Fatalf("%s: the object is gone", mode)
		}
		info, err := r.Stat(t.Context(), "k", storage.StatOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.DeleteIf(t.Context(), "k", storage.Conditions{IfMatch: []string{info.ETag}}); err != nil {
			t.Fatal(err)
		}
		if r.stores[0].has("k") || r.stores[1].has("k") {
			t.Fatalf("%s: the object is still there", mode)
		}
	}
	s := newRig(t, 2, spread)
	s.mustPut("k", "v")
	wantCode(t, s.DeleteIf(t.Context(), "k", storage.Conditions{IfMatch: []string{"*"}}), storage.CodeUnsupported)
}

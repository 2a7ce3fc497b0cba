package muxengine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// at makes a store take bodies at so many bytes a second.
func (f *fake) at(rate int) {
	f.readBody = func(ctx context.Context, r io.Reader) ([]byte, error) {
		var all []byte
		piece := make([]byte, max(rate/10, 1))
		for {
			n, err := io.ReadFull(r, piece)
			all = append(all, piece[:n]...)
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				return all, nil
			}
			if err != nil {
				return nil, err
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
}

// counting is a body that can be read once and counts what was read.
type counting struct {
	io.Reader
	read int64
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += int64(n)
	return n, err
}

func TestFanOutReadsTheBodyOnceAndDropsAMemberThatIsTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, spool := range map[string]int64{"with a spool": 64 << 20, "with the ring alone": 0} {
			r := newRig(t, 3, inMode(ModeMirror), func(_ *Config, o *Options) { o.Spool = NewMemorySpool(spool) })
			data := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16)
			r.stores[0].at(1 << 20)
			r.stores[1].at(1 << 20)
			r.stores[2].at(1 << 10)
			body := &counting{Reader: bytes.NewReader(data)}
			began := time.Now()
			if _, err := r.SetStream(t.Context(), "k", storage.Stream(body, int64(len(data))), storage.SetOptions{}); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 3300*time.Millisecond {
				t.Fatalf("%s: the slow member held the others up: %s", name, took)
			}
			if body.read != int64(len(data)) {
				t.Fatalf("%s: %d bytes were read", name, body.read)
			}
			for _, f := range r.stores[:2] {
				if f.content("k") != string(data) {
					t.Fatalf("%s: %s holds something else", name, f.name)
				}
			}
			events := r.told(TopicFanoutPartial)
			if len(events) != 1 || !slices.Equal(events[0].Failed, []string{"c"}) || storage.CodeOf(events[0].Causes[0]) != storage.CodeBackendTimeout {
				t.Fatalf("%s: got %+v", name, events)
			}
			if s := r.member("c"); s.State != StateDown || s.Timeouts != 1 || r.stores[2].has("k") {
				t.Fatalf("%s: got %+v", name, s)
			}
		}
	})
}

// Without room to keep the body the members go on together, and none is lost that
// only lags.
func TestFanOutWaitsForAMemberThatLagsWhereTheBodyIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, kept := range []int64{0, 1 << 20} {
			r := newRig(t, 3, inMode(ModeMirror), func(_ *Config, o *Options) { o.Spool = NewMemorySpool(kept) })
			data := strings.Repeat("0123456789abcdef", 6<<20/16)
			r.stores[1].at(512 << 10)
			began := time.Now()
			if _, err := r.SetStream(t.Context(), "k", once(data), storage.SetOptions{}); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < 11*time.Second || took > 13*time.Second {
				t.Errorf("with %d bytes kept it took %s", kept, took)
			}
			for _, f := range r.stores {
				if f.content("k") != data {
					t.Errorf("with %d bytes kept %s holds %d bytes", kept, f.name, len(f.content("k")))
				}
			}
			if told := r.told(TopicFanoutPartial); len(told) != 0 {
				t.Errorf("with %d bytes kept: got %+v", kept, told)
			}
		}
	})
}

func TestFanOutDoesNotWaitForAMemberThatWasGivenUpAndDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror), func(_ *Config, o *Options) { o.Spool = NewMemorySpool(0) },
			withMembers(func(_ int, m *Member) { m.MayBlock = true }))
		data := strings.Repeat("0123456789abcdef", 6<<20/16)
		back := make(chan struct{})
		r.stores[1].readBody = func(context.Context, io.Reader) ([]byte, error) {
			<-back
			return nil, errors.New("too late")
		}
		began := time.Now()
		if _, err := r.SetStream(t.Context(), "k", once(data), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 2*slowTime {
			t.Errorf("it took %s", took)
		}
		if told := r.told(TopicFanoutPartial); len(told) != 1 || !slices.Equal(told[0].Failed, []string{"b"}) {
			t.Errorf("got %+v", told)
		}
		close(back)
		synctest.Wait()
	})
}

func TestMemberThatWasTooSlowGetsOneTrialWriteAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, inMode(ModeMirror))
		data := strings.Repeat("x", 1<<20)
		r.stores[1].at(1 << 10)
		if _, err := r.SetStream(t.Context(), "k", once(data), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		wantCounts(t, r.stores, "set", 1, 1)
		r.stores[1].readBody = func(_ context.Context, rd io.Reader) ([]byte, error) {
			time.Sleep(100 * time.Millisecond)
			return io.ReadAll(rd)
		}
		time.Sleep(time.Second)
		done := make(chan struct{})
		for range 5 {
			go func() {
				r.mustPut("k", "y")
				done <- struct{}{}
			}()
		}
		for range 5 {
			<-done
		}
		wantCounts(t, r.stores, "set", 6, 2)
		r.mustPut("k", "z")
		wantCounts(t, r.stores, "set", 7, 3)
	})
}

func TestATrialWriteDoesNotWaitForAMemberThatIsStillTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, inMode(ModeMirror))
		data := strings.Repeat("x", 1<<20)
		r.stores[1].at(1 << 10)
		for i, limit := range []time.Duration{3 * time.Second, 600 * time.Millisecond, 600 * time.Millisecond} {
			began := time.Now()
			if _, err := r.SetStream(t.Context(), "k", once(data), storage.SetOptions{}); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > limit {
				t.Errorf("write %d took %s", i, took)
			}
			wantCounts(t, r.stores, "set", i+1, i+1)
			time.Sleep(time.Hour)
		}
		r.stores[1].at(100 << 10)
		if _, err := r.SetStream(t.Context(), "k", once(data), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		if r.stores[1].content("k") != data || r.member("b").WritesDown {
			t.Fatal("a member that keeps the pace again did not pass its trial")
		}
	})
}

func TestMemberThatTakesBodiesAndDoesNotAnswerIsTriedEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, inMode(ModeMirror), withTimeout(time.Second))
		r.stores[1].readBody = func(ctx context.Context, rd io.Reader) ([]byte, error) {
			_, _ = io.Copy(io.Discard, rd)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		var slow []time.Duration
		for began := time.Now(); time.Since(began) < 5*time.Minute; time.Sleep(100 * time.Millisecond) {
			at := time.Now()
			r.mustPut("k", "x")
			if time.Since(at) > 0 {
				slow = append(slow, at.Sub(began))
			}
		}
		if len(slow) > 10 {
			t.Errorf("writes at %v waited for the member", slow)
		}
		r.stores[1].readBody = nil
		time.Sleep(2 * time.Minute)
		r.mustPut("k", "y")
		if r.stores[1].content("k") != "y" || r.member("b").WritesDown {
			t.Error("a member that answers again did not pass its trial")
		}
	})
}

func TestSteadyMemberIsNotTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, inMode(ModeMirror))
		data := strings.Repeat("x", 1<<20)
		r.stores[1].at(100 << 10)
		if _, err := r.SetStream(t.Context(), "k", once(data), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		if r.stores[1].content("k") != data || len(r.told(TopicFanoutPartial)) != 0 {
			t.Fatal("a member that keeps the pace was dropped")
		}
	})
}

func TestFanOutWaitsForASlowClientWithoutBlame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror), withTimeout(time.Second))
		slow := readerFunc(func(p []byte) (int, error) {
			time.Sleep(4 * time.Second)
			return copy(p, "x"), nil
		})
		if _, err := r.SetStream(t.Context(), "k", storage.Stream(io.LimitReader(slow, 5), -1), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, f := range r.stores {
			if f.content("k") != "xxxxx" {
				t.Fatalf("%s holds %q", f.name, f.content("k"))
			}
		}
	})
}

func TestFanOutOfABodyThatBreaksOffIsTheClientsFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror))
		body := storage.Stream(io.MultiReader(strings.NewReader("half"), failing{io.ErrUnexpectedEOF}), 10)
		_, err := r.SetStream(t.Context(), "k", body, storage.SetOptions{})
		wantCode(t, err, storage.CodeInvalidBody)
		for _, m := range r.Stats().Members {
			if m.State != StateUp {
				t.Fatalf("got %+v", m)
			}
		}
		if n := len(r.told(TopicFanoutPartial)); n != 0 {
			t.Fatalf("%d events", n)
		}
	})
}

func TestFanOutDeletesEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, mode := range []Mode{ModeMirror, ModeShield} {
			r := newRig(t, 3, inMode(mode))
			r.everywhere("k", "x")
			if err := r.Delete(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			wantCounts(t, r.stores, "delete", 1, 1, 1)
		}
	})
}

func TestFanOutEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror))
		for _, f := range r.stores {
			f.hang()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := storage.Set(ctx, r.Mux, "k", []byte("x"), storage.SetOptions{})
		wantCode(t, err, storage.CodeBackendAborted)
		for _, m := range r.Stats().Members {
			if m.State != StateUp || m.Aborts != 1 {
				t.Fatalf("got %+v", m)
			}
		}
	})
}

func TestMuxThatIsTooSlowIsDroppedAndItsLeafKnowsWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, nest(ModeMirror, ModeFailover))
		data := strings.Repeat("x", 1<<20)
		r.stores[2].at(1 << 10)
		began := time.Now()
		if _, err := r.SetStream(t.Context(), "k", once(data), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Fatalf("it took %s", took)
		}
		if e := r.told(TopicFanoutPartial); len(e) != 1 || !slices.Equal(e[0].Failed, []string{"pair1"}) {
			t.Fatalf("got %+v", e)
		}
		leaves := r.member("pair1").Nested.Members
		if leaves[0].State != StateDown || leaves[1].State != StateUp || r.stores[3].count("set") != 0 {
			t.Fatalf("got %+v", leaves)
		}
	})
}

func TestMirrorsOfANestedOriginThatIsDownAreNotWrittenTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeShield), func(cfg *Config, _ *Options) {
			origin := Config{Mode: ModeFailover, Members: cfg.Members[:2]}
			cfg.Members = []Member{{Name: "origin", Mux: &origin}, cfg.Members[2]}
		})
		r.stores[0].fail(unavailable())
		r.stores[1].fail(unavailable())
		wantCode(t, r.put("k", "x"), storage.CodeAllBackendsDown)
		time.Sleep(time.Minute)
		before := r.stores[2].count("set")
		wantCode(t, r.put("k", "x"), storage.CodeAllBackendsDown)
		if r.stores[2].count("set") != before {
			t.Fatal("a mirror was written to without its origin")
		}
		r.stores[0].fail(nil)
		time.Sleep(time.Minute)
		r.mustPut("k", "y")
		if r.stores[0].content("k") != "y" || r.stores[2].content("k") != "y" {
			t.Fatal("once the origin is back the write goes everywhere")
		}
	})
}

func TestMemberThatIsDownAndDueDoesNotArbitrate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror))
		r.stores[0].fail(unavailable())
		r.mustPut("other", "x")
		time.Sleep(time.Minute)
		opts := storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}}
		if _, err := r.SetStream(t.Context(), "k", once("x"), opts); err != nil {
			t.Fatal(err)
		}
		if _, err := r.SetStream(t.Context(), "k", once("y"), opts); storage.CodeOf(err) != storage.CodePreconditionFailed {
			t.Fatalf("got %v", err)
		}
		if r.stores[1].content("k") != "x" || r.stores[2].content("k") != "x" {
			t.Fatal("the others hold the winner's bytes")
		}
	})
}

func TestMembersThatABodyIsNotKeptForAreNamedAndNotBlamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, inMode(ModeMirror), func(_ *Config, o *Options) { o.Spool = NewMemorySpool(0) })
		opts := storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}}
		if _, err := r.SetStream(t.Context(), "k", once(strings.Repeat("x", 3<<20)), opts); err != nil {
			t.Fatal(err)
		}
		if told := r.told(TopicFanoutPartial); len(told) != 1 || fmt.Sprint(told[0].Failed) != "[b c]" {
			t.Fatalf("got %v", told)
		}
		for _, m := range r.Stats().Members {
			if m.State != StateUp || m.WritesDown {
				t.Fatalf("got %+v", m)
			}
		}
	})
}

func TestConditionalWriteOfUnknownOutcomeInAMirrorIsNotMadeAgainByTheMuxAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, nest(ModeFailover, ModeMirror))
		r.stores[0].set(func(_ context.Context, op, _ string) error {
			if op == "set" {
				return &storage.Error{Code: storage.CodeUnavailable, Outcome: storage.OutcomeUnknown, Message: "reset"}
			}
			return nil
		})
		opts := storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}}
		_, err := r.SetStream(t.Context(), "k", once("x"), opts)
		if outcomeOf(err) != storage.OutcomeUnknown {
			t.Fatalf("got %v", err)
		}
		wantCounts(t, r.stores, "set", 1, 0, 0, 0)
	})
}

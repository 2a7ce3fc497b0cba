package muxengine

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

func TestWalkFallsThroughToTheNextBackendOnATransientError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		r.mustGet("k", "hello")
		events := r.told(TopicFailover)
		if len(events) != 1 || events[0].From != "a" || events[0].To != "b" || !strings.Contains(events[0].Cause.Error(), "try again") {
			t.Fatalf("got %+v", events)
		}
	})
}

func TestWalkReturnsSemanticErrorWithoutAdvancing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, code := range []storage.Code{
			storage.CodeKeyNotFound, storage.CodeInvalidKey, storage.CodePreconditionFailed,
			storage.CodeCredentialExpired, storage.CodeUnsupported, storage.CodeAccessDenied,
		} {
			r := newRig(t, 2)
			r.stores[0].fail(storage.Errorf(code, "", "no"))
			_, err := r.get("k")
			wantCode(t, err, code)
			wantCounts(t, r.stores, "get", 1, 0)
			if s := r.member("a"); s.State != StateUp || s.ConsecutiveFailures != 0 {
				t.Fatalf("%s changed the health: %+v", code, s)
			}
		}
	})
}

func TestWalkThatExhaustsTheListReportsAllBackendsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3)
		for i, f := range r.stores {
			f.fail(&storage.Error{Code: storage.CodeUnavailable, Status: 502 + i})
		}
		_, err := r.get("k")
		wantCode(t, err, storage.CodeAllBackendsDown)
		var e, cause *storage.Error
		if !errors.As(err, &e) || e.AttemptCount != 3 || !errors.As(e.Cause, &cause) || cause.Status != 504 || cause.Backend != "c" {
			t.Fatalf("got %#v", err)
		}
	})
}

func TestHungPrimaryDoesNotDelayTheFallbackBeyondItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withTimeout(2*time.Second))
		r.everywhere("k", "hello")
		r.stores[0].hang()
		r.stores[1].set(func(context.Context, string, string) error {
			time.Sleep(10 * time.Millisecond)
			return nil
		})
		began := time.Now()
		r.mustGet("k", "hello")
		if d := time.Since(began); d > 2*time.Second+50*time.Millisecond {
			t.Fatalf("it took %s", d)
		}
		if s := r.member("a"); s.Timeouts != 1 || s.Errors != 1 || s.State != StateDown {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestExhaustedTimeoutsAreTheCauseOfAllBackendsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withTimeout(time.Second), withRetry(3))
		for _, f := range r.stores {
			f.hang()
		}
		began := time.Now()
		_, err := r.get("k")
		wantCode(t, err, storage.CodeAllBackendsDown)
		if !errors.Is(err, storage.ErrBackendTimeout) || !errors.Is(err, storage.CauseTimeout) {
			t.Fatalf("got %v", err)
		}
		wantCounts(t, r.stores, "get", 1, 1)
		if d := time.Since(began); d != 2*time.Second {
			t.Fatalf("it took %s: a timeout was retried in place", d)
		}
	})
}

func TestCallThatIgnoresItsContextIsLeftAloneWhenItsTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withTimeout(time.Second), withMembers(func(_ int, m *Member) { m.MayBlock = true }))
		r.everywhere("k", "hello")
		release := make(chan struct{})
		r.stores[0].set(func(context.Context, string, string) error { <-release; return nil })
		r.mustGet("k", "hello")
		if s := r.member("a"); s.InFlight != 1 {
			t.Fatalf("the hung call is not in flight: %+v", s)
		}
		close(release)
		synctest.Wait()
		if s := r.member("a"); s.InFlight != 0 || r.stores[0].openBodies() != 0 {
			t.Fatalf("the late answer was not put away: %+v", s)
		}
	})
}

func TestCallerWhoHasLeftIsNotServedAndNobodyIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := r.GetStream(ctx, "k", storage.GetOptions{})
		wantCode(t, err, storage.CodeBackendAborted)
		wantCounts(t, r.stores, "get", 0, 0)
	})
}

func TestCallersLeavingReachesTheBackendAndIsNobodysFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		var seen error
		r.stores[0].set(func(ctx context.Context, _, _ string) error {
			<-ctx.Done()
			seen = context.Cause(ctx)
			return ctx.Err()
		})
		reason := errors.New("had enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		time.AfterFunc(5*time.Millisecond, func() { cancel(reason) })
		_, err := r.GetStream(ctx, "k", storage.GetOptions{})
		wantCode(t, err, storage.CodeBackendAborted)
		if !errors.Is(err, reason) || !errors.Is(seen, reason) || time.Since(began) != 5*time.Millisecond {
			t.Fatalf("got %v, the backend saw %v after %s", err, seen, time.Since(began))
		}
		wantCounts(t, r.stores, "get", 1, 0)
		if s := r.member("a"); s.State != StateUp || s.Aborts != 1 || s.Errors != 0 {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestBackendIsRetriedInPlaceBeforeTheNextIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withRetry(3))
		r.everywhere("k", "hello")
		left := 2
		r.stores[0].set(func(context.Context, string, string) error {
			if left--; left >= 0 {
				return unavailable()
			}
			return nil
		})
		began := time.Now()
		r.mustGet("k", "hello")
		wantCounts(t, r.stores, "get", 3, 0)
		if time.Since(began) < 20*time.Millisecond {
			t.Fatalf("there was no pause: %s", time.Since(began))
		}
		if s := r.member("a"); s.Hits != 1 || s.Errors != 0 || s.State != StateUp {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestBodyThatIsReadOnceIsReplayedToTheNextBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		data := strings.Repeat("0123456789", 50_000)
		r.stores[0].readBody = func(_ context.Context, rd io.Reader) ([]byte, error) {
			_, _ = io.CopyN(io.Discard, rd, 100_000)
			return nil, unavailable()
		}
		if _, err := r.SetStream(t.Context(), "k", once(data), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		if r.stores[1].content("k") != data || r.stores[0].has("k") {
			t.Fatal("the body did not arrive")
		}
	})
}

func TestBodyThatWasNotKeptEndsTheWriteHonestly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, func(_ *Config, o *Options) { o.Spool = NewMemorySpool(1) })
		r.stores[0].readBody = func(_ context.Context, rd io.Reader) ([]byte, error) {
			_, _ = io.CopyN(io.Discard, rd, 1000)
			return nil, unavailable()
		}
		_, err := r.SetStream(t.Context(), "k", once(strings.Repeat("x", 200_000)), storage.SetOptions{})
		var e *storage.Error
		if !errors.As(err, &e) || e.Code != storage.CodeUnavailable || e.Status != 503 {
			t.Fatalf("got %v", err)
		}
		wantCounts(t, r.stores, "set", 1, 0)
	})
}

func TestBodyThatTheClientBreaksOffIsNoBackendsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tc := range map[string]struct {
			broken error
			code   storage.Code
		}{
			"the client left":         {context.Canceled, storage.CodeBackendAborted},
			"the connection broke":    {io.ErrUnexpectedEOF, storage.CodeInvalidBody},
			"the digest is not right": {storage.Errorf(storage.CodeInvalidBody, "", "digest"), storage.CodeInvalidBody},
		} {
			r := newRig(t, 2, withRetry(3))
			body := storage.Stream(io.MultiReader(strings.NewReader("half"), failing{tc.broken}), 10)
			_, err := r.SetStream(t.Context(), "k", body, storage.SetOptions{})
			wantCode(t, err, tc.code)
			wantCounts(t, r.stores, "set", 1, 0)
			if s := r.member("a"); s.State != StateUp || r.stores[0].has("k") {
				t.Fatalf("%s: got %+v", name, s)
			}
		}
	})
}

func TestTimeLimitRestsWhileTheClientIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withTimeout(time.Second))
		slow := readerFunc(func(p []byte) (int, error) {
			time.Sleep(10 * time.Second)
			return copy(p, "x"), nil
		})
		if _, err := r.SetStream(t.Context(), "k", storage.Stream(io.LimitReader(slow, 3), -1), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		if r.stores[0].content("k") != "xxx" {
			t.Fatalf("got %q", r.stores[0].content("k"))
		}
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestFirstByteTimeBeginsAfterTheLastByteOfTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, withTimeout(time.Second))
		r.stores[0].after = func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}
		slow := readerFunc(func(p []byte) (int, error) {
			time.Sleep(5 * time.Second)
			return copy(p, "x"), nil
		})
		began := time.Now()
		_, err := r.SetStream(t.Context(), "k", storage.Stream(io.LimitReader(slow, 1), 1), storage.SetOptions{})
		if !errors.Is(err, storage.ErrBackendTimeout) {
			t.Fatalf("got %v", err)
		}
		if d := time.Since(began); d != 6*time.Second {
			t.Fatalf("it took %s", d)
		}
	})
}

func TestReadResumesOnTheNextBackendThatHoldsTheSameVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3)
		data := strings.Repeat("abcdefghij", 1000)
		r.everywhere("k", data)
		r.stores[0].breakAfter, r.stores[0].breakWith = 3333, io.ErrUnexpectedEOF
		r.stores[1].put("k", strings.Repeat("other data", 1000), map[string]string{versionKey: "v2"})
		r.mustGet("k", data)
		if events := r.told(TopicFailover); len(events) != 2 && len(events) != 1 {
			t.Fatalf("got %+v", events)
		}
		for _, f := range r.stores {
			if f.openBodies() != 0 {
				t.Fatalf("%s still has a body open", f.name)
			}
		}
		if s := r.member("a"); s.State != StateDown || s.Errors != 1 || s.Hits != 0 || s.InFlight != 0 {
			t.Fatalf("got %+v", s)
		}
		if s := r.Stats(); s.TotalResumes != 1 || s.TotalBroken != 0 {
			t.Fatalf("%d resumes, %d broken", s.TotalResumes, s.TotalBroken)
		}
	})
}

func TestRangeMeansTheSameAfterAResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "0123456789")
		r.stores[0].breakAfter, r.stores[0].breakWith = 2, io.ErrUnexpectedEOF
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{Range: &storage.Range{First: 3, Last: 7}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(obj.Body)
		if err != nil || string(got) != "34567" || obj.Offset != 3 || obj.Length != 5 {
			t.Fatalf("got %q, %v", got, err)
		}
		_ = obj.Body.Close()
	})
}

func TestReadThatCannotBeResumedFailsLoudly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.stores[0].put("k", "the first version", nil)
		r.stores[1].put("k", "the other version", nil)
		r.stores[0].breakAfter, r.stores[0].breakWith = 4, io.EOF
		got, err := r.get("k")
		if s := r.Stats(); s.TotalResumes != 0 || s.TotalBroken != 1 {
			t.Errorf("%d resumes, %d broken", s.TotalResumes, s.TotalBroken)
		}
		if err == nil || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("a short body went unnoticed: %q, %v", got, err)
		}
	})
}

func TestStoreThatStallsInABodyIsGivenUpAndTheReadResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withTimeout(time.Second))
		r.everywhere("k", "hello, world")
		r.stores[0].breakAfter, r.stores[0].stall = 5, true
		began := time.Now()
		r.mustGet("k", "hello, world")
		if d := time.Since(began); d != time.Second {
			t.Fatalf("it took %s", d)
		}
		if s := r.member("a"); s.State != StateDown || s.Timeouts != 1 {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestSlowClientIsNoStallOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withTimeout(time.Second))
		r.everywhere("k", "hello")
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		got, err := io.ReadAll(obj.Body)
		if err != nil || string(got) != "hello" {
			t.Fatalf("got %q, %v", got, err)
		}
		_ = obj.Body.Close()
	})
}

func TestResetAfterTheClientsOwnStallDoesNotCountAgainstTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		r.stores[0].breakAfter, r.stores[0].breakWith = 2, io.ErrUnexpectedEOF
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		got, err := io.ReadAll(obj.Body)
		if err != nil || string(got) != "hello" {
			t.Fatalf("got %q, %v", got, err)
		}
		_ = obj.Body.Close()
		if s := r.member("a"); s.State != StateUp {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestWriteWithoutAnAnswerIsFoundByItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withTimeout(time.Second))
		r.stores[0].after = func(context.Context, string) error {
			return &storage.Error{Code: storage.CodeUnavailable, Outcome: storage.OutcomeUnknown, Message: "reset"}
		}
		r.mustPut("k", "hello")
		if r.stores[1].has("k") {
			t.Fatal("the write was made twice")
		}
		if s := r.member("a"); s.State != StateUp || s.Hits != 1 {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestConditionalWriteWithoutAnAnswerIsNotMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.stores[0].set(func(_ context.Context, op, _ string) error {
			if op == "set" {
				return &storage.Error{Code: storage.CodeUnavailable, Outcome: storage.OutcomeUnknown, Message: "reset"}
			}
			return nil
		})
		opts := storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}}
		_, err := r.SetStream(t.Context(), "k", once("x"), opts)
		var e *storage.Error
		if !errors.As(err, &e) || e.Outcome != storage.OutcomeUnknown || e.Status != 503 {
			t.Fatalf("got %v", err)
		}
		wantCounts(t, r.stores, "set", 1, 0)
		time.Sleep(time.Minute)
		r.mustPut("k", "unconditional")
		wantCounts(t, r.stores, "set", 2, 1)
		if r.stores[1].content("k") != "unconditional" {
			t.Fatal("an unconditional write may be replayed")
		}
	})
}

func TestVersionIsKeptWithTheObjectAndHiddenFromClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		opts := storage.SetOptions{Metadata: map[string]string{"colour": "red", versionKey: "forged"}}
		if _, err := r.SetStream(t.Context(), "k", once("x"), opts); err != nil {
			t.Fatal(err)
		}
		info, err := r.Stat(t.Context(), "k", storage.StatOptions{})
		if err != nil || len(info.Metadata) != 1 || info.Metadata["colour"] != "red" || info.ServedBy != "a" {
			t.Fatalf("got %+v, %v", info, err)
		}
		if v := r.stores[0].objects["k"].info.Metadata[versionKey]; v == "" || v == "forged" {
			t.Fatalf("got version %q", v)
		}
		if opts.Metadata[versionKey] != "forged" {
			t.Fatal("the caller's map was changed")
		}
	})
}

func TestTimeLimitOfTheStoresOwnClientIsNotTakenForTheCallersLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.everywhere("k", "hello")
		// A net.Dialer whose Timeout has passed says the same.
		r.stores[0].fail(storage.Errorf(storage.CodeUnavailable, "GetStream", "asking the store").WithCause(
			&net.OpError{Op: "dial", Err: context.DeadlineExceeded}))
		r.mustGet("k", "hello")
		if m := r.member("a"); m.State != StateDown || m.Errors != 1 || m.Aborts != 0 {
			t.Fatalf("got %+v", m)
		}
	})
}

// longer is a store whose bodies go on beyond the length that it announces.
type longer struct{ *fake }

func (l longer) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	obj, err := l.fake.GetStream(ctx, key, opts)
	if err == nil {
		obj.Body = &fakeBody{Reader: io.MultiReader(obj.Body, strings.NewReader("more")), ctx: ctx, fake: l.fake}
	}
	return obj, err
}

func TestBodyLongerThanAnnouncedIsCutLoudlyAndNothingIsReadTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withMembers(func(i int, m *Member) {
			if i == 0 {
				m.Storage = longer{m.Storage.(*fake)}
			}
		}))
		r.everywhere("k", "hello")
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer obj.Body.Close()
		data, err := io.ReadAll(bufio.NewReader(obj.Body))
		if string(data) != "hello" || err == nil {
			t.Fatalf("got %q, %v", data, err)
		}
	})
}

func TestWriteIsNotLookedForLongerThanAStoreThatHangsIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withTimeout(time.Second), withMembers(func(_ int, m *Member) { m.MayBlock = true }))
		stuck := make(chan struct{})
		r.stores[0].after = func(context.Context, string) error { <-stuck; return nil }
		r.stores[0].set(func(_ context.Context, op, _ string) error {
			if op == "stat" {
				<-stuck
			}
			return nil
		})
		began := time.Now()
		r.mustPut("k", "x")
		if d := time.Since(began); d != 2*time.Second || !r.stores[1].has("k") {
			t.Fatalf("it took %s", d)
		}
		close(stuck)
	})
}

func TestConditionalWriteThatADrainCutOffAfterItsLastByteIsNotMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.stores[0].after = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		r.stores[0].set(func(_ context.Context, op, _ string) error {
			if op == "stat" {
				return unavailable()
			}
			return nil
		})
		go func() {
			time.Sleep(time.Second)
			cfg := r.config()
			cfg.Members[0].Drain = Drain{Phase: DrainGranted, Deadline: time.Now()}
			_ = r.Apply(cfg)
		}()
		opts := storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}}
		_, err := r.SetStream(t.Context(), "k", once("x"), opts)
		if outcomeOf(err) != storage.OutcomeUnknown || r.stores[1].count("set") != 0 {
			t.Fatalf("got %v", err)
		}
	})
}

// lazy is a store that does not read a body that is empty.
type lazy struct{ *fake }

func (l lazy) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	if _, err := l.fake.SetStream(ctx, key, storage.Bytes(nil), opts); err != nil {
		return storage.Info{}, err
	}
	<-ctx.Done()
	return storage.Info{}, ctx.Err()
}

func TestEmptyBodyCountsAsSentThoughNobodyReadsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withTimeout(time.Second), withMembers(func(_ int, m *Member) { m.Storage = lazy{m.Storage.(*fake)} }))
		opts := storage.SetOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"*"}}}
		if _, err := r.SetStream(t.Context(), "k", once(""), opts); err != nil {
			t.Fatalf("the write was done, and its version is there: %v", err)
		}
		wantCounts(t, r.stores, "set", 1, 0)
	})
}

func TestErrorOfAReplayedWriteSaysThatItMayHaveTakenEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2)
		r.stores[0].fail(&storage.Error{Code: storage.CodeUnavailable, Outcome: storage.OutcomeUnknown})
		r.stores[1].fail(unavailable())
		err := r.put("k", "x")
		wantCode(t, err, storage.CodeAllBackendsDown)
		if outcomeOf(err) != storage.OutcomeUnknown {
			t.Fatalf("got %+v", err)
		}
	})
}

func TestStoreThatStallsIsToBlameThoughItsClientHadStalledBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withTimeout(time.Second))
		r.everywhere("k", "0123456789")
		r.stores[0].stall, r.stores[0].breakAfter = true, 4
		obj, err := r.GetStream(t.Context(), "k", storage.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer obj.Body.Close()
		time.Sleep(2 * clientStall)
		data, err := io.ReadAll(obj.Body)
		if m := r.member("a"); string(data) != "0123456789" || err != nil || m.State != StateDown {
			t.Fatalf("got %q, %v, %+v", data, err, m)
		}
	})
}

func TestReadOfABodyThatIgnoresItsContextIsLeftAloneAndResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, withTimeout(time.Second), withMembers(func(_ int, m *Member) { m.MayBlock = true }))
		r.everywhere("k", "0123456789")
		stuck := make(chan struct{})
		r.stores[0].breakAfter, r.stores[0].stuck = 4, stuck
		began := time.Now()
		r.mustGet("k", "0123456789")
		if d := time.Since(began); d != time.Second {
			t.Fatalf("it took %s", d)
		}
		if m := r.member("a"); m.State != StateDown || m.InFlight != 1 || m.Timeouts != 1 {
			t.Fatalf("what still runs is in flight: got %+v", m)
		}
		close(stuck)
		synctest.Wait()
		if m := r.member("a"); m.InFlight != 0 || r.stores[0].openBodies() != 0 {
			t.Fatalf("got %+v, %d open bodies", m, r.stores[0].openBodies())
		}
	})
}

// pipe is a body whose Read waits for the other end until it is closed.
type pipe struct{ *io.PipeReader }

func (p pipe) Open() (io.ReadCloser, error) { return p.PipeReader, nil }
func (pipe) Size() int64                    { return -1 }
func (pipe) Replayable() bool               { return false }

func TestWriteThatEndsEarlyLetsGoOfAReadThatWaitsForTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1)
		ended := make(chan error, 1)
		r.stores[0].readBody = func(_ context.Context, body io.Reader) ([]byte, error) {
			// A client of HTTP goes on reading after an early answer.
			go func() {
				_, err := body.Read(make([]byte, 1))
				ended <- err
			}()
			synctest.Wait()
			return nil, storage.Errorf(storage.CodeAccessDenied, "SetStream", "no")
		}
		in, out := io.Pipe()
		defer out.Close()
		_, err := r.SetStream(t.Context(), "k", pipe{in}, storage.SetOptions{})
		wantCode(t, err, storage.CodeAccessDenied)
		if err := <-ended; err == nil {
			t.Fatal("there was nothing to read")
		}
	})
}

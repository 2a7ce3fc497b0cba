package muxengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/suaveplan/storagemux/internal/storage"
)

func withSpans(spans *tracetest.SpanRecorder) option {
	return func(_ *Config, o *Options) {
		o.Tracer = trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("test")
	}
}

func attributesOf(span trace.ReadOnlySpan) map[string]string {
	m := map[string]string{}
	for _, kv := range span.Attributes() {
		m[string(kv.Key)] = kv.Value.String()
	}
	return m
}

func TestOperationHasOneSpanAndOneBelowItForEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		r := newRig(t, 2, withSpans(spans))
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		r.stores[1].set(func(context.Context, string, string) error { time.Sleep(25 * time.Millisecond); return nil })
		r.mustGet("k", "hello")
		ended := spans.Ended()
		if len(ended) != 3 {
			t.Fatalf("%d spans", len(ended))
		}
		parent := ended[2]
		if parent.Name() != "storage-mux.get" {
			t.Fatalf("got %s", parent.Name())
		}
		if a := attributesOf(parent); a["mux.mode"] != "failover" || a["mux.key"] != "k" || a["mux.name"] != "mux" {
			t.Fatalf("got %v", a)
		}
		for i, outcome := range []string{"transient", "ok"} {
			span := ended[i]
			a := attributesOf(span)
			if span.Name() != "storage-mux.attempt" || span.Parent().SpanID() != parent.SpanContext().SpanID() ||
				a["mux.attempt.index"] != fmt.Sprint(i) || a["mux.outcome"] != outcome ||
				a["mux.backend.name"] != r.stores[i].name || a["mux.mode"] != "failover" || a["mux.name"] != "mux" {
				t.Fatalf("attempt %d: %s %v", i, span.Name(), a)
			}
		}
		if a := attributesOf(ended[1]); a["mux.latency.ms"] != "25" {
			t.Fatalf("got %v", a)
		}
	})
}

func TestSpansOfNestedMuxesAreNestedUnderTheNameOfTheOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		r := newRig(t, 4, nest(ModeFailover, ModeMirror), withSpans(spans))
		r.mustPut("k", "x")
		if ok, err := storage.Has(t.Context(), r.Mux, "k"); !ok || err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		names := map[string]trace.ReadOnlySpan{}
		byID := map[string]trace.ReadOnlySpan{}
		for _, s := range spans.Ended() {
			byID[s.SpanContext().SpanID().String()] = s
			names[s.Name()+" of "+attributesOf(s)["mux.name"]] = s
		}
		for _, operation := range []string{"storage-mux.set", "storage-mux.has"} {
			inner := names[operation+" of pair0"]
			if inner == nil {
				t.Fatalf("no inner span %s: %v", operation, names)
			}
			attempt := byID[inner.Parent().SpanID().String()]
			outer := byID[attempt.Parent().SpanID().String()]
			if attempt.Name() != "storage-mux.attempt" || outer.Name() != operation || attributesOf(outer)["mux.name"] != "mux" {
				t.Fatalf("%s lies in %s in %s", operation, attempt.Name(), outer.Name())
			}
		}
	})
}

func TestOutcomesOfAttemptsHaveTheirNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		r := newRig(t, 1, withSpans(spans), withTimeout(time.Second))
		_, _ = r.get("missing")
		r.stores[0].hang()
		_, _ = r.get("k")
		var got []string
		for _, s := range spans.Ended() {
			for _, kv := range s.Attributes() {
				if kv.Key == attribute.Key("mux.outcome") {
					got = append(got, kv.Value.AsString())
				}
			}
		}
		if strings.Join(got, " ") != "semantic timeout" {
			t.Fatalf("got %v", got)
		}
	})
}

func TestWithoutSinkAndTracerEverythingWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, func(_ *Config, o *Options) { o.Events = nil })
		r.everywhere("k", "hello")
		r.stores[0].fail(unavailable())
		r.mustGet("k", "hello")
		if r.Stats().TotalFailovers != 1 {
			t.Fatal("no failover was counted")
		}
	})
}

func TestEventsSayWhereAndWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, nest(ModeFailover, ModeFailover))
		r.everywhere("k", "hello")
		time.Sleep(time.Minute)
		r.stores[0].fail(unavailable())
		r.mustGet("k", "hello")
		down := r.told(TopicBackendDown)
		if len(down) != 1 || down[0].Mux != "pair0" || down[0].Path != "pair0" || down[0].Name != "a" || !down[0].Time.Equal(time.Now()) {
			t.Fatalf("got %+v", down)
		}
		if s := r.member("pair0").Nested.Members[0]; !s.LastTransition.Equal(time.Now()) && time.Since(s.LastTransition) > time.Microsecond {
			t.Fatalf("got %+v", s)
		}
	})
}

func TestStatsCountOneOutcomeForEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, withTimeout(time.Second))
		r.everywhere("k", "hello")
		r.stores[0].set(func(context.Context, string, string) error { time.Sleep(7 * time.Millisecond); return nil })
		r.mustGet("k", "hello")
		_, _ = r.get("missing")
		r.stores[0].fail(unavailable())
		_, _ = r.get("k")
		time.Sleep(time.Second)
		r.stores[0].hang()
		_, _ = r.get("k")
		s := r.member("a")
		if s.Hits != 1 || s.Misses != 1 || s.Errors != 2 || s.Timeouts != 1 || s.Aborts != 0 || s.ConsecutiveFailures != 2 {
			t.Fatalf("got %+v", s)
		}
		if s.LastLatency != time.Second || s.P50Latency != 7*time.Millisecond || s.P99Latency != time.Second {
			t.Fatalf("got %+v", s)
		}
		if total := r.Stats(); total.TotalCalls != 4 || total.Mode != ModeFailover || total.TotalFailovers != 0 {
			t.Fatalf("got %+v", total)
		}
		if s.LastError == nil || s.LastError.Code != storage.CodeBackendTimeout {
			t.Fatalf("got %+v", s.LastError)
		}
	})
}

func TestReservoirIsBoundedAndUniform(t *testing.T) {
	var r reservoir
	random := uint64(1)
	for i := range 100_000 {
		random = mix(random + 0x9e3779b97f4a7c15)
		r.add(int64(i), random)
	}
	if len(r.slots) != 256 {
		t.Fatalf("%d slots", len(r.slots))
	}
	p := r.percentiles(0.25, 0.5, 0.75)
	for i, want := range []float64{25_000, 50_000, 75_000} {
		if got := float64(p[i]); got < want-12_000 || got > want+12_000 {
			t.Errorf("got %v, want about %v", got, want)
		}
	}
}

func TestConcurrentCallsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, inMode(ModeRoundRobin))
		r.everywhere("k", "x")
		r.stores[2].fail(storage.Errorf(storage.CodeAccessDenied, "", "no"))
		done := make(chan struct{})
		for range 100 {
			go func() { _, _ = r.get("k"); done <- struct{}{} }()
		}
		for range 100 {
			<-done
		}
		var sum uint64
		for _, m := range r.Stats().Members {
			sum += m.Hits + m.Misses + m.Errors + m.Aborts
		}
		if s := r.Stats(); sum != 100 || s.TotalCalls != 100 || s.Members[2].Errors != 25 {
			t.Fatalf("%d attempts, %+v", sum, s)
		}
	})
}

func TestLastErrorHoldsNoURL(t *testing.T) {
	err := &storage.Error{Code: storage.CodeUnavailable, Message: "writing k", Cause: fmt.Errorf("Put \"http://h/b?X-Amz-Signature=secret\": %w", fmt.Errorf("connection refused"))}
	if got := Describe(err).Message; got != "writing k: connection refused" {
		t.Fatalf("got %q", got)
	}
}

func TestDescribedErrorsOfSeveralMembersHoldNoURL(t *testing.T) {
	err := storage.Errorf(storage.CodeAllBackendsDown, "Stat", "nobody").WithCause(errors.Join(
		storage.Errorf(storage.CodeUnavailable, "Stat", "asking").WithCause(&url.Error{Op: "Get", URL: "https://h/?sig=secret", Err: io.ErrUnexpectedEOF}),
		errors.New("another")))
	if got := Describe(err); got.Message != "nobody: unexpected EOF" {
		t.Fatalf("got %q", got.Message)
	}
}

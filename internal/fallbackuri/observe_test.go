package fallbackuri

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/suaveplan/storagemux/internal/storage"
)

func TestOperationHasASpanAndOneBelowItForEachCandidate(t *testing.T) {
	exported := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(exported))
	r := newRig(t, Policy{}, func(o *Options) { o.Tracer, o.Name = provider.Tracer("test"), "ladder" })
	r.everywhere("x")
	r.a.fail(unavailable())
	const secret = "s3cr3t"
	r.wantGet(ladderOf("memory://a/k", nested(1, "memory://b/k"), "https://user:"+secret+"@host/?"+secret), "x")
	spans := exported.GetSpans()
	byName := map[string]int{}
	for _, s := range spans {
		byName[s.Name]++
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.String(), secret) {
				t.Errorf("%s shows %s", s.Name, a.Value.String())
			}
		}
	}
	if byName["storage-uri.fallback.get"] != 2 || byName["storage-uri.fallback.candidate"] != 3 {
		t.Fatalf("got %v", byName)
	}
	// They end from the inside to the outside.
	failed, top := spans[0], spans[len(spans)-1]
	if top.Parent.IsValid() || failed.Parent.SpanID() != top.SpanContext.SpanID() {
		t.Fatal("the span of a candidate is not below that of the operation")
	}
	if failed.Status.Code != codes.Error || failed.Status.Description != string(storage.CodeUnavailable) {
		t.Fatalf("got %+v", failed.Status)
	}
	want := map[attribute.Key]string{
		"fallback.candidate.uri": "memory://a/k", "fallback.candidate.index": "0", "fallback.candidate.scheme": "memory", "fallback.outcome": "transient",
	}
	for _, a := range failed.Attributes {
		if w, ok := want[a.Key]; ok && w == a.Value.String() {
			delete(want, a.Key)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing %v in %+v", want, failed.Attributes)
	}
	// The nested URI's own span hangs below the candidate that it is.
	for _, s := range spans {
		if s.Name == "storage-uri.fallback.get" && s.Parent.IsValid() && s.Parent.SpanID() == top.SpanContext.SpanID() {
			t.Error("the ladder below is not below its candidate")
		}
	}
}

func TestCandidatesAreCountedAndTimedByOutcome(t *testing.T) {
	reader := metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(reader))
	r := newRig(t, Policy{}, func(o *Options) { o.Meter, o.Name = provider.Meter("test"), "ladder" })
	r.everywhere("x")
	r.a.fail(unavailable())
	for range 3 {
		r.wantGet(abc, "x")
	}
	_ = r.set("y")
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	counts, timed := map[string]int64{}, uint64(0)
	for _, m := range all.ScopeMetrics[0].Metrics {
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			if m.Name != "storage_uri.fallback.candidates" {
				t.Errorf("got a counter %s", m.Name)
			}
			for _, p := range data.DataPoints {
				value := func(key attribute.Key) string { v, _ := p.Attributes.Value(key); return v.String() }
				counts[strings.Join([]string{value("name"), value("operation"), value("candidate"), value("scheme"), value("outcome")}, " ")] = p.Value
			}
		case metricdata.Histogram[float64]:
			if m.Name != "storage_uri.fallback.candidate.latency" || m.Unit != "s" {
				t.Errorf("got a histogram %s in %s", m.Name, m.Unit)
			}
			for _, p := range data.DataPoints {
				timed += p.Count
			}
		}
	}
	for labels, want := range map[string]int64{
		"ladder getStream 0 memory transient": 3, "ladder getStream 1 memory ok": 3,
		"ladder setStream 0 memory transient": 1, "ladder setStream 1 memory ok": 1, "ladder setStream 2 memory ok": 1,
	} {
		if counts[labels] != want {
			t.Errorf("%s: got %d, want %d", labels, counts[labels], want)
		}
	}
	if len(counts) != 5 || timed != 9 {
		t.Errorf("got %v, %d timed", counts, timed)
	}
}

package fallbackuri

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Names of the instruments.
const (
	// CandidatesCounter counts calls of candidates.
	CandidatesCounter = "storage_uri.fallback.candidates"
	// LatencyHistogram is in seconds.
	LatencyHistogram = "storage_uri.fallback.candidate.latency"
)

// Names of attributes of the instruments.
const (
	// AttributeScheme is the scheme of a candidate.
	AttributeScheme = attribute.Key("scheme")
	// AttributeOutcome is ok, transient, semantic or abort.
	AttributeOutcome = attribute.Key("outcome")
)

// telemetry are the spans and figures of one ladder. What is not asked for costs
// nothing.
type telemetry struct {
	tracer   trace.Tracer
	attempts metric.Int64Counter
	latency  metric.Float64Histogram
}

func newTelemetry(opts Options) (*telemetry, error) {
	t := &telemetry{tracer: opts.Tracer}
	if opts.Meter == nil {
		return t, nil
	}
	var err error
	if t.attempts, err = opts.Meter.Int64Counter(CandidatesCounter,
		metric.WithDescription("Calls of candidates of fallback URIs, by what they meant for the walk.")); err != nil {
		return nil, err
	}
	t.latency, err = opts.Meter.Float64Histogram(LatencyHistogram,
		metric.WithUnit("s"), metric.WithDescription("Time to the first byte of a candidate's answer."))
	return t, err
}

type spanKey struct{}

// startCall opens the span of an operation.
func (t *telemetry) startCall(ctx context.Context, r *record) context.Context {
	if t.tracer == nil {
		return ctx
	}
	ctx, span := t.tracer.Start(ctx, "storage-uri.fallback."+storage.Operation(ctx, traced[r.op]), trace.WithAttributes(
		attribute.String("fallback.name", r.ladder.opts.Name),
		attribute.String("fallback.uri", r.ladder.shown),
		attribute.Int("fallback.depth", r.frame.depth),
		attribute.Int("fallback.candidates", len(r.ladder.candidates)),
	))
	return context.WithValue(ctx, spanKey{}, span)
}

// traced are the names of operations in spans.
var traced = map[string]string{
	"GetStream": "getStream", "Stat": "stat", "SetStream": "setStream",
	"SetPartial": "setPartial", "Delete": "delete", "List": "list",
}

func (t *telemetry) endCall(r *record, err error) {
	if t.tracer == nil {
		return
	}
	span, _ := r.ctx.Value(spanKey{}).(trace.Span)
	fail(span, err)
	span.End()
}

// candidateSpan is one call of a candidate being measured.
type candidateSpan struct {
	ctx  context.Context
	t    *telemetry
	c    *candidate
	op   string
	span trace.Span
}

func (t *telemetry) startCandidate(ctx context.Context, c *candidate, r *record) candidateSpan {
	s := candidateSpan{ctx: ctx, t: t, c: c, op: r.op}
	if t.tracer != nil {
		s.ctx, s.span = t.tracer.Start(ctx, "storage-uri.fallback.candidate", trace.WithAttributes(
			attribute.String("fallback.candidate.uri", c.shown),
			attribute.Int("fallback.candidate.index", c.index),
			attribute.String("fallback.candidate.scheme", c.scheme),
		))
	}
	return s
}

func (s candidateSpan) end(v verdict, err error, took time.Duration) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String("fallback.outcome", v.String()))
		fail(s.span, err)
		s.span.End()
	}
	if s.t.attempts == nil {
		return
	}
	// Candidates are told apart by their place: what a URI says is not for labels.
	labels := metric.WithAttributeSet(attribute.NewSet(
		attribute.String("name", s.c.ladder.opts.Name),
		attribute.Int("candidate", s.c.index),
		AttributeScheme.String(s.c.scheme),
		attribute.String("operation", traced[s.op]),
		AttributeOutcome.String(v.String()),
	))
	s.t.attempts.Add(s.ctx, 1, labels)
	s.t.latency.Record(s.ctx, took.Seconds(), labels)
}

// fail marks a span without the error's own text, which may hold a URL.
func fail(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, string(storage.CodeOf(err)))
	}
}

package s3

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// startSpan opens the span of the request, if there is a tracer. What it is
// about is known at its end.
func (q *request) startSpan() {
	tracer := q.h.opts.Tracer
	if tracer == nil {
		return
	}
	ctx := q.r.Context()
	if q.h.opts.TraceContext != nil {
		ctx = q.h.opts.TraceContext(ctx, q.r.Header)
	}
	ctx, q.span = tracer.Start(ctx, "s3", trace.WithSpanKind(trace.SpanKindServer))
	q.r = q.r.WithContext(ctx)
}

// endSpan closes the span. It holds nothing of headers and query.
func (q *request) endSpan() {
	if q.span == nil {
		return
	}
	s := &q.stats
	q.span.SetName(s.Operation)
	q.span.SetAttributes(
		attribute.String("storagemux.request.id", q.id),
		attribute.String("storagemux.operation", s.Operation),
		attribute.String("storagemux.outcome", s.outcome()),
		attribute.Int("http.response.status_code", s.Status),
		attribute.Int64("storagemux.bytes.in", s.BytesIn),
		attribute.Int64("storagemux.bytes.out", s.BytesOut),
	)
	if s.ServedBy != "" {
		q.span.SetAttributes(attribute.String("storagemux.member", s.ServedBy))
	}
	if s.ErrorCode != "" {
		q.span.SetAttributes(attribute.String("error.type", s.ErrorCode))
	}
	if s.Status >= http.StatusInternalServerError || s.Aborted {
		q.span.SetStatus(codes.Error, s.ErrorCode)
	}
	q.span.End()
}

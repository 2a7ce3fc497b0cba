package muxengine

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/suaveplan/storagemux/internal/storage"
)

// startSpan opens the span of an operation, if there is a tracer.
func (c *call) startSpan() {
	tracer := c.node.mux.opts.Tracer
	if tracer == nil {
		return
	}
	name := "storage-mux." + storage.Operation(c.ctx, traced[c.req.op])
	attributes := []attribute.KeyValue{
		attribute.String("mux.mode", string(c.node.cfg.Mode)),
		attribute.String("mux.name", c.node.cfg.Name),
	}
	if c.req.key != "" {
		attributes = append(attributes, attribute.String("mux.key", c.req.key))
	}
	c.ctx, c.span = tracer.Start(c.ctx, name, trace.WithAttributes(attributes...))
}

func (c *call) endSpan(err error) {
	if c.span == nil {
		return
	}
	finish(c.span, err)
	c.span = nil
}

// startSpan opens the span of an attempt, if there is a tracer.
func (a *attempt) startSpan() {
	tracer := a.call.node.mux.opts.Tracer
	if tracer == nil {
		return
	}
	a.ctx, a.span = tracer.Start(a.ctx, "storage-mux.attempt", trace.WithAttributes(
		attribute.String("mux.backend.name", a.m.name),
		attribute.Int("mux.attempt.index", a.index),
		attribute.String("mux.mode", string(a.call.node.cfg.Mode)),
		attribute.String("mux.name", a.call.node.cfg.Name),
	))
}

func (a *attempt) endSpan(err error) {
	if a.span == nil {
		return
	}
	outcome := storage.Classify(err).String()
	if storage.CodeOf(err) == storage.CodeBackendTimeout {
		outcome = "timeout"
	}
	a.span.SetAttributes(
		attribute.String("mux.outcome", outcome),
		attribute.Float64("mux.latency.ms", float64(a.firstByte)/float64(time.Millisecond)),
	)
	finish(a.span, err)
	a.span = nil
}

func finish(span trace.Span, err error) {
	if err != nil {
		// The error's own text may hold what a trace should not, a URL with
		// its query for one.
		span.SetStatus(codes.Error, string(storage.CodeOf(err)))
	}
	span.End()
}

package s3

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Options are what a Handler keeps for life. Every zero field has a default.
type Options struct {
	// Logger takes at most one line per request. The default discards.
	Logger *slog.Logger
	// AccessLog says which requests are logged, and at which level. The
	// default is AccessLogErrors.
	AccessLog AccessLog
	// Tracer makes a span of each request, named by its operation, below
	// which the storage's lie. Nil makes none, at no cost.
	Tracer trace.Tracer
	// TraceContext returns the context with the trace that a client's headers
	// name. Nil begins a trace of its own with each request.
	TraceContext func(context.Context, http.Header) context.Context
	// Metrics is told of every request. The default does nothing.
	Metrics Metrics
	// RequestID makes the id of a request. The default is 16 random hex
	// digits in capitals, as S3 has them.
	RequestID func() string
	// Now is the clock that signatures are checked against. The default is
	// time.Now.
	Now func() time.Time
}

// Metrics takes the figures of requests. It is called from many goroutines.
type Metrics interface {
	// RequestFinished is called once per request, after its last byte.
	RequestFinished(RequestStats)
}

// RequestStats are the figures of one finished request.
type RequestStats struct {
	// Operation is S3's name of the operation, e.g. GetObject, from a small
	// fixed set; Unknown for a request that is none.
	Operation string
	// Status is the HTTP status that was answered, or StatusClientClosed.
	Status int
	// ErrorCode is S3's code of the error, empty on success; StorageCode is
	// the storage's own, where it came from there.
	ErrorCode, StorageCode string
	// ServedBy is the path of the member that answered, where known.
	ServedBy string
	// BytesIn and BytesOut are bytes of content, without framing.
	BytesIn, BytesOut int64
	// FirstByte is the time to the answer's head and Duration to its end.
	FirstByte, Duration time.Duration
	// Aborted is set where the answer was cut: the client left, or a body
	// broke after its head was sent.
	Aborted bool
}

// StatusClientClosed is the status in logs and metrics of a request whose
// client left before it was answered.
const StatusClientClosed = 499

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.AccessLog == "" {
		o.AccessLog = AccessLogErrors
	}
	if o.Metrics == nil {
		o.Metrics = noMetrics{}
	}
	if o.RequestID == nil {
		o.RequestID = newRequestID
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

type noMetrics struct{}

func (noMetrics) RequestFinished(RequestStats) {}

func newRequestID() string {
	var raw [8]byte
	_, _ = rand.Read(raw[:])
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, 2*len(raw))
	for _, b := range raw {
		out = append(out, digits[b>>4], digits[b&15])
	}
	return string(out)
}

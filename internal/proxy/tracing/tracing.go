package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// DefaultService is the name of the service where neither OTEL_SERVICE_NAME nor
// OTEL_RESOURCE_ATTRIBUTES gives one.
const DefaultService = "storagemux"

// Tracing makes spans and sends them on. The nil *Tracing does neither.
type Tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	extracts bool
}

// New sets up tracing by the variables that getenv gives: nil, without an error,
// where no endpoint is named or tracing is switched off. An exporter, protocol
// or propagator that this build does not have is an error, rather than traces
// that never arrive. Everything else (headers, compression, certificates,
// sampler, limits, batches) the SDK reads itself, from the process's own
// environment. An endpoint that does not answer costs nothing but the spans.
func New(ctx context.Context, getenv func(string) string, version string, log *slog.Logger) (*Tracing, error) {
	settings, err := parse(getenv)
	if err != nil || !settings.enabled {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up the exporter of traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", DefaultService), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("describe this process for traces: %w", err)
	}
	otel.SetErrorHandler(quiet(log, time.Now))
	return of(sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)), settings.extracts), nil
}

// of makes a Tracing of a provider, which it closes.
func of(provider *sdktrace.TracerProvider, extracts bool) *Tracing {
	return &Tracing{provider, provider.Tracer("github.com/suaveplan/storagemux"), extracts}
}

// Tracer returns what makes spans, nil where there are to be none.
func (t *Tracing) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// Extract returns ctx with the trace context of a request's headers, if that is
// well-formed and wanted. Baggage is left out: nothing here reads it.
func (t *Tracing) Extract(ctx context.Context, header http.Header) context.Context {
	if t == nil || !t.extracts || len(header["Traceparent"]) != 1 {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(header))
}

// Shutdown sends what is left, for as long as ctx allows.
func (t *Tracing) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

type settings struct{ enabled, extracts bool }

// parse reads the variables that the SDK leaves to whoever sets it up.
func parse(getenv func(string) string) (settings, error) {
	first := func(names ...string) (name, value string) {
		for _, name = range names {
			if value = strings.TrimSpace(getenv(name)); value != "" {
				break
			}
		}
		return name, value
	}
	_, endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint == "" || strings.EqualFold(strings.TrimSpace(getenv("OTEL_SDK_DISABLED")), "true") {
		return settings{}, nil
	}
	switch name, exporter := first("OTEL_TRACES_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return settings{}, nil
	default:
		return settings{}, fmt.Errorf("%s: must be otlp or none", name)
	}
	if name, protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return settings{}, fmt.Errorf("%s: must be http/protobuf", name)
	}
	name, list := first("OTEL_PROPAGATORS")
	if list == "" {
		return settings{enabled: true, extracts: true}, nil
	}
	var names []string
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if one != "tracecontext" && one != "baggage" && one != "none" {
			return settings{}, fmt.Errorf("%s: may hold tracecontext, baggage and none", name)
		}
		names = append(names, one)
	}
	return settings{enabled: true, extracts: slices.Contains(names, "tracecontext") && !slices.Contains(names, "none")}, nil
}

// quietTime is the least time between two complaints of the exporter.
const quietTime = time.Minute

// quiet logs why spans are lost, once in a while.
func quiet(log *slog.Logger, now func() time.Time) otel.ErrorHandlerFunc {
	var mu sync.Mutex
	var last time.Time
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if at := now(); last.IsZero() || at.Sub(last) >= quietTime {
			last = at
			log.Warn("traces are being lost", "error", err)
		}
	}
}

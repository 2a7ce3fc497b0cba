package tracing

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

func TestTheEnvironmentDecides(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318"
	for name, test := range map[string]struct {
		env     string
		want    settings
		problem string
	}{
		"nothing":              {"", settings{}, ""},
		"an endpoint":          {endpoint, settings{true, true}, ""},
		"one for traces":       {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318/v1/traces", settings{true, true}, ""},
		"the SDK disabled":     {endpoint + " OTEL_SDK_DISABLED=TRUE", settings{}, ""},
		"no exporter":          {endpoint + " OTEL_TRACES_EXPORTER=none", settings{}, ""},
		"another exporter":     {endpoint + " OTEL_TRACES_EXPORTER=zipkin", settings{}, "OTEL_TRACES_EXPORTER"},
		"without an endpoint":  {"OTEL_TRACES_EXPORTER=zipkin", settings{}, ""},
		"the protocol":         {endpoint + " OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", settings{true, true}, ""},
		"another protocol":     {endpoint + " OTEL_EXPORTER_OTLP_PROTOCOL=grpc", settings{}, "OTEL_EXPORTER_OTLP_PROTOCOL"},
		"that of traces first": {endpoint + " OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", settings{}, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"},
		"propagators":          {endpoint + " OTEL_PROPAGATORS=baggage,tracecontext", settings{true, true}, ""},
		"only baggage":         {endpoint + " OTEL_PROPAGATORS=baggage", settings{true, false}, ""},
		"no propagator":        {endpoint + " OTEL_PROPAGATORS=none", settings{true, false}, ""},
		"another propagator":   {endpoint + " OTEL_PROPAGATORS=b3", settings{}, "OTEL_PROPAGATORS"},
	} {
		env := map[string]string{}
		for _, one := range strings.Fields(test.env) {
			name, value, _ := strings.Cut(one, "=")
			env[name] = value
		}
		got, err := parse(func(name string) string { return env[name] })
		if problem := text(err); got != test.want || !strings.Contains(problem, test.problem) || (problem != "") != (test.problem != "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestNoTracingIsUsableAsItIs(t *testing.T) {
	var none *Tracing
	if none.Tracer() != nil || none.Extract(t.Context(), http.Header{}) != t.Context() || none.Shutdown(t.Context()) != nil {
		t.Error("it does something")
	}
}

func TestOnlyAWellFormedTraceContextIsTaken(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	provider := sdktrace.NewTracerProvider()
	for name, test := range map[string]struct {
		values   []string
		extracts bool
		taken    bool
	}{
		"well-formed":   {[]string{good}, true, true},
		"not wanted":    {[]string{good}, false, false},
		"absent":        {nil, true, false},
		"twice":         {[]string{good, good}, true, false},
		"no trace":      {[]string{"00-00000000000000000000000000000000-b7ad6b7169203331-01"}, true, false},
		"no hex":        {[]string{"00-zzf7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, true, false},
		"too short":     {[]string{good[:40]}, true, false},
		"too long":      {[]string{good + "-more"}, true, false},
		"a bad version": {[]string{"ff" + good[2:]}, true, false},
	} {
		ctx := of(provider, test.extracts).Extract(t.Context(), http.Header{"Traceparent": test.values})
		if taken := trace.SpanContextFromContext(ctx).IsValid(); taken != test.taken {
			t.Errorf("%s: taken %v", name, taken)
		}
	}
}

func TestLostTracesAreLoggedOnceInAWhile(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(0, 0)
	handle := quiet(slog.New(slog.NewTextHandler(&log, nil)), func() time.Time { return now })
	for range 3 {
		handle(errors.New("no answer"))
	}
	now = now.Add(quietTime)
	handle(errors.New("no answer"))
	if n := strings.Count(log.String(), "no answer"); n != 2 {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}

package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/proxy/tracing"
)

// collector is an OTLP endpoint.
type collected struct {
	mu    sync.Mutex
	raw   strings.Builder
	spans []*tracepb.Span
}

func (c *collected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request coltracepb.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &request) != nil || r.URL.Path != "/v1/traces" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	for _, of := range request.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

func TestSpansReachTheCollectorBeforeTheProxyEnds(t *testing.T) {
	spans := &collected{}
	endpoint := httptest.NewServer(spans)
	defer endpoint.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.URL)
	// Nothing is sent while the proxy runs.
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")

	r := start(t, testDocument(1, "one"), func(o *Options) {
		var err error
		if o.Tracing, err = tracing.New(t.Context(), os.Getenv, "v1", o.Log); err != nil {
			t.Fatal(err)
		}
	})
	c := client(t)
	request, err := http.NewRequest(http.MethodGet, r.url("s3", "/assets/k?X-Amz-Signature=hunter2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=hunter2")
	request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	response, err := c.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	r.stop()
	r.ended <- <-r.ended

	named := map[string]*tracepb.Span{}
	for _, span := range spans.spans {
		named[span.Name] = span
	}
	server, operation, attempt := named["GetObject"], named["storage-mux.getStream"], named["storage-mux.attempt"]
	if len(spans.spans) != 3 || server == nil || operation == nil || attempt == nil {
		t.Fatalf("got %v", spans.spans)
	}
	if string(server.ParentSpanId) != "\xb7\xad\x6b\x71\x69\x20\x33\x31" || server.Kind != tracepb.Span_SPAN_KIND_SERVER ||
		string(operation.ParentSpanId) != string(server.SpanId) || string(attempt.ParentSpanId) != string(operation.SpanId) {
		t.Errorf("the spans do not hang together: %v", spans.spans)
	}
	attributes := map[string]string{}
	for _, one := range server.Attributes {
		attributes[one.Key] = one.Value.String()
	}
	if id := response.Header.Get("X-Amz-Request-Id"); !strings.Contains(attributes["storagemux.request.id"], id) ||
		!strings.Contains(attributes["http.response.status_code"], "404") || !strings.Contains(attributes["storagemux.operation"], "GetObject") {
		t.Errorf("got %v", attributes)
	}
	if strings.Contains(spans.raw.String(), "hunter2") {
		t.Error("a credential is in the trace")
	}
}

func TestLadderSendsSpansOfItsCandidatesAndCountsThemBySchemeAndOutcome(t *testing.T) {
	spans := &collected{}
	endpoint := httptest.NewServer(spans)
	defer endpoint.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()

	const secretPath = "a-path-of-a-candidate"
	d := withWeb(web.URL+"/"+secretPath+"/", muxconfig.Fallback{WriteMode: "first-success", ErrorClass: "transient"},
		"backend://a/"+secretPath, "http://127.0.0.1/"+secretPath+"/")
	r := start(t, d, func(o *Options) {
		var err error
		if o.Tracing, err = tracing.New(t.Context(), os.Getenv, "v1", o.Log); err != nil {
			t.Fatal(err)
		}
	})
	c := client(t, admin().TLS)
	do(t, c, http.MethodPut, r.url("s3", "/assets/k"), "", strings.NewReader("data"))
	do(t, c, http.MethodGet, r.url("s3", "/assets/k"), "", nil)
	do(t, c, http.MethodGet, r.url("s3", "/assets/missing"), "", nil)
	_, text := do(t, c, http.MethodGet, r.url("admin", "/metrics"), admin().Token.Reveal(), nil)
	for _, line := range []string{
		`storagemux_fallback_candidates_total{outcome="ok",scheme="backend"} 2`,
		`storagemux_fallback_candidates_total{outcome="transient",scheme="backend"} 1`,
		`storagemux_fallback_candidates_total{outcome="transient",scheme="http"} 1`,
		`storagemux_fallback_candidate_first_byte_seconds_count{outcome="ok",scheme="backend"} 2`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	if strings.Contains(text, secretPath) {
		t.Error("a URI is in the metrics")
	}
	r.stop()
	r.ended <- <-r.ended

	named, byID := map[string]int{}, map[string]*tracepb.Span{}
	for _, span := range spans.spans {
		named[span.Name]++
		byID[string(span.SpanId)] = span
	}
	if named["storage-uri.fallback.getStream"] != 2 || named["storage-uri.fallback.setStream"] != 1 || named["storage-uri.fallback.candidate"] != 4 {
		t.Fatalf("got %v", named)
	}
	for _, span := range spans.spans {
		// From a candidate up: the walk, the attempt on the ladder, its mux, the request.
		if span.Name != "storage-uri.fallback.candidate" {
			continue
		}
		var up []string
		for at := byID[string(span.ParentSpanId)]; at != nil; at = byID[string(at.ParentSpanId)] {
			up = append(up, at.Name)
		}
		if len(up) != 4 || !strings.HasPrefix(up[0], "storage-uri.fallback.") || up[1] != "storage-mux.attempt" || !strings.HasPrefix(up[2], "storage-mux.") {
			t.Errorf("a candidate is below %v", up)
		}
	}
}

func TestProfilesAreServedOnRequestAndForTheTokenOnly(t *testing.T) {
	const profile = "/debug/pprof/goroutine?debug=1"
	token := admin().Token.Reveal()
	for _, asked := range []bool{false, true} {
		r := start(t, testDocument(1, "one"), func(o *Options) { o.Pprof = asked })
		c := client(t, admin().TLS)
		if response, _ := do(t, c, http.MethodGet, r.url("admin", profile), "", nil); response.StatusCode != http.StatusUnauthorized {
			t.Errorf("without the token: %d", response.StatusCode)
		}
		want := http.StatusNotFound
		if asked {
			want = http.StatusOK
		}
		if response, _ := do(t, c, http.MethodGet, r.url("admin", profile), token, nil); response.StatusCode != want {
			t.Errorf("asked for: %v, got %d", asked, response.StatusCode)
		}
	}
}

func TestMetricsHoldEachFigureAndNothingOfRequests(t *testing.T) {
	r := start(t, testDocument(1, "one", "two"), nil)
	c := client(t, admin().TLS)
	do(t, c, http.MethodPut, r.url("s3", "/assets/a-key-of-a-client"), "", strings.NewReader("data"))
	do(t, c, "STRANGE", r.url("s3", "/assets/a-key-of-a-client?with=query"), "", nil)
	_, text := do(t, c, http.MethodGet, r.url("admin", "/metrics"), admin().Token.Reveal(), nil)
	for _, line := range []string{
		`storagemux_requests_total{error="",operation="PutObject",status="200"} 1`,
		`storagemux_requests_total{error="NotImplemented",operation="Unknown",status="501"} 1`,
		`storagemux_request_first_byte_seconds_count{operation="PutObject"} 1`,
		`storagemux_request_duration_seconds_count{operation="PutObject"} 1`,
		`storagemux_request_bytes_total{direction="in"} 4`, `storagemux_requests_in_flight 0`,
		`storagemux_member_attempts_total{member="one",outcome="hit"} 1`, `storagemux_member_state{member="two",state="up"} 1`,
		`storagemux_failovers_total 0`, `storagemux_fanout_partials_total 0`,
		`storagemux_body_resumes_total{result="resumed"} 0`, `storagemux_body_resumes_total{result="broken"} 0`,
		`storagemux_spool_bytes{where="memory"} 0`, `storagemux_spool_refused_total 0`,
		`storagemux_reloads_total{result="applied"} 1`, `storagemux_reloads_total{result="rejected"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
	for _, word := range []string{"a-key-of-a-client", "STRANGE", "query"} {
		if strings.Contains(text, word) {
			t.Errorf("%q of a request is in the metrics", word)
		}
	}
}

package proxy

import (
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/proxy/tracing"
)

// TestCredentialsAreToldNowhere runs a proxy over a store that sends the headers
// it was sent back in its errors, and looks for marked credentials in all that
// the proxy tells.
func TestCredentialsAreToldNowhere(t *testing.T) {
	const mark = "MARKED-CREDENTIAL"
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>%s</Message></Error>", html.EscapeString(fmt.Sprint(r.Header)))
	}))
	defer store.Close()
	spans := &collected{}
	collector := httptest.NewServer(spans)
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)

	log := &lockedText{}
	doc := testDocument(1, "a")
	doc.Backends[0].Memory = nil
	doc.Backends[0].S3 = &muxconfig.S3{
		Endpoint: store.URL, Region: "eu-central-1", Bucket: "bucket", AddressingStyle: muxconfig.AddressingPath,
		Auth: muxconfig.S3Auth{Type: muxconfig.AuthSecret, AccessKeyID: "AKIDMARKED", SecretAccessKey: mark + "-KEY", SessionToken: mark + "-TOKEN"},
	}
	doc.Frontend.Auth = muxconfig.FrontendSigV4
	doc.Frontend.KeyPairs = []muxconfig.KeyPair{{AccessKeyID: "AKIDFRONT", SecretAccessKey: mark + "-FRONT"}}
	open := *doc
	open.Revision = 2
	open.Frontend = muxconfig.Frontend{Bucket: "assets", Auth: muxconfig.FrontendNone}
	broken := *doc
	broken.Revision = 3
	broken.Frontend.TLS = &muxconfig.KeyCert{Cert: mark + "-CERT", Key: mark + "-TLS"}

	r := start(t, doc, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		var err error
		if o.Tracing, err = tracing.New(t.Context(), os.Getenv, "v1", o.Log); err != nil {
			t.Fatal(err)
		}
	})
	told := map[string]string{}
	c := client(t)
	_, told["the answer to a request without a signature"] = do(t, c, http.MethodGet, r.url("s3", "/assets/k"), "", nil)
	r.offer(t, &open)
	_, told["the answer to a read"] = do(t, c, http.MethodGet, r.url("s3", "/assets/k"), "", nil)
	_, told["the answer to a list"] = do(t, c, http.MethodGet, r.url("s3", "/assets?list-type=2"), "", nil)
	_, told["the answer to a write"] = do(t, c, http.MethodPut, r.url("s3", "/assets/k"), "", strings.NewReader("body"))
	r.source <- encode(t, &broken)
	waitFor(t, "the rejection", func() bool { return r.applier.rejection.Load() != nil })

	got, err := json.Marshal(report(t, r, "", "0s"))
	if err != nil {
		t.Fatal(err)
	}
	told["the report"] = string(got)
	_, told["the metrics"] = do(t, client(t, admin().TLS), http.MethodGet, r.url("admin", "/metrics"), admin().Token.Reveal(), nil)
	r.stop()
	r.ended <- <-r.ended
	told["the log"], told["the spans"] = log.String(), spans.raw.String()

	for where, text := range told {
		if i := strings.Index(text, mark); i >= 0 {
			t.Errorf("%s tells a credential: %s", where, text[max(0, i-200):min(len(text), i+100)])
		}
	}
	for where, what := range map[string]string{
		"the report": `"rejection"`, "the metrics": "storagemux_", "the log": "document rejected", "the spans": "storage-mux.attempt",
		"the answer to a read": "<Error>",
	} {
		if !strings.Contains(told[where], what) {
			t.Errorf("%s does not say %q, so that it proves nothing: %.300s", where, what, told[where])
		}
	}
}

// lockedText is text that several goroutines write.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

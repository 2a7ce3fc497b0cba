package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// running is a Server that runs.
type running struct {
	*Server
	source channelSource
	stop   context.CancelFunc
	ended  chan error
}

// start runs a server that has been offered d, which may be nil.
func start(t *testing.T, d *muxconfig.Document, change func(*Options)) *running {
	t.Helper()
	source := make(channelSource)
	s := newServer(t, func(o *Options) {
		o.Source = source
		if change != nil {
			change(o)
		}
	})
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{s, source, cancel, make(chan error, 1)}
	go func() { r.ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	if d != nil {
		r.offer(t, d)
	}
	return r
}

// offer offers d and waits until it is served.
func (r *running) offer(t *testing.T, d *muxconfig.Document) {
	t.Helper()
	before, _ := r.hub.since("", 0)
	r.source <- encode(t, d)
	waitFor(t, fmt.Sprintf("revision %d and its acknowledgement", d.Revision), func() bool {
		now := r.applier.served.Load()
		seq, _ := r.hub.since("", 0)
		return now != nil && now.doc.Revision == d.Revision && seq > before
	})
}

// waitFor polls until what has happened.
func waitFor(t *testing.T, what string, happened func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !happened() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *running) url(port, path string) string {
	scheme := "http"
	if port == "admin" {
		scheme = "https"
	}
	return scheme + "://" + r.Addr(port).String() + path
}

// client trusts exactly the certificates that pairs hold.
func client(t *testing.T, pairs ...muxconfig.KeyCert) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	for _, pair := range pairs {
		roots.AppendCertsFromPEM([]byte(pair.Cert))
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: "storagemux-proxy", MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

func do(t *testing.T, c *http.Client, method, url, token string, body io.Reader) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return response, string(text)
}

func TestReadinessFollowsTheFirstValidDocument(t *testing.T) {
	r := start(t, nil, nil)
	c := client(t)
	check := func(path string, status int, text string) {
		t.Helper()
		if response, body := do(t, c, "GET", r.url("health", path), "", nil); response.StatusCode != status || !strings.Contains(body, text) {
			t.Errorf("%s answers %d %q, want %d %q", path, response.StatusCode, body, status, text)
		}
	}
	check("/healthz", 200, "ok")
	check("/readyz", 503, "no document yet")
	if response, _ := do(t, c, "GET", r.url("s3", "/assets"), "", nil); response.StatusCode != 503 {
		t.Errorf("without a document the front answers %d", response.StatusCode)
	}
	if _, err := client(t, admin().TLS).Get(r.url("admin", "/metrics")); err == nil {
		t.Error("without a document the admin port answers")
	}
	r.source <- Offer{Data: []byte(`{"schema":99}`)}
	waitFor(t, "a rejection", func() bool { return r.applier.rejection.Load() != nil })
	check("/readyz", 503, "no valid document yet: schema: version 99")
	r.source <- encode(t, testDocument(1, "a"))
	waitFor(t, "the document", func() bool { return r.applier.served.Load() != nil })
	check("/readyz", 200, "ok")
	r.source <- Offer{Data: []byte(`{"schema":99}`)}
	check("/readyz", 200, "ok")
}

func TestTheAdminPortAsksForTheTokenOfTheDocument(t *testing.T) {
	r := start(t, testDocument(1, "a"), nil)
	old, token := client(t, admin().TLS), admin().Token.Reveal()
	for _, path := range []string{"/metrics", muxconfig.ReportPath} {
		for _, wrong := range []string{"", "x", token + "x", token[:len(token)-1]} {
			if response, _ := do(t, old, "GET", r.url("admin", path), wrong, nil); response.StatusCode != 401 {
				t.Errorf("%s with token %q answers %d", path, wrong, response.StatusCode)
			}
		}
		if response, body := do(t, old, "GET", r.url("admin", path), token, nil); response.StatusCode != 200 || response.ProtoMajor != 2 {
			t.Errorf("%s answers %s %d: %s", path, response.Proto, response.StatusCode, body)
		}
	}

	d := testDocument(2, "a")
	renewed, err := muxconfig.NewAdmin(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	d.Admin = renewed
	r.offer(t, d)
	if response, _ := do(t, old, "GET", r.url("admin", "/metrics"), token, nil); response.StatusCode != 401 {
		t.Errorf("the old token still opens: %d", response.StatusCode)
	}
	fresh := client(t, renewed.TLS)
	if response, _ := do(t, fresh, "GET", r.url("admin", "/metrics"), renewed.Token.Reveal(), nil); response.StatusCode != 200 {
		t.Errorf("the new token does not open: %d", response.StatusCode)
	}
}

func report(t *testing.T, r *running, cursor, wait string) muxconfig.Report {
	t.Helper()
	response, body := do(t, client(t, admin().TLS), "GET", r.url("admin", muxconfig.ReportPath+"?cursor="+cursor+"&wait="+wait), admin().Token.Reveal(), nil)
	if response.StatusCode != 200 {
		t.Fatalf("the report answers %d: %s", response.StatusCode, body)
	}
	var got muxconfig.Report
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestALongPollIsAnsweredByTheNextDocument(t *testing.T) {
	r := start(t, testDocument(1, "a"), nil)
	first := report(t, r, "", "20s") // a foreign cursor does not wait
	if first.Applied.Revision != 1 || first.BootID == "" {
		t.Fatalf("the first report is %+v", first)
	}
	answered := make(chan muxconfig.Report, 1)
	go func() { answered <- report(t, r, first.Cursor(), "20s") }()
	waitFor(t, "the poll", func() bool { return len(r.reporter.slots) > 0 })
	select {
	case early := <-answered:
		t.Fatalf("a poll was answered without news: %+v", early)
	case <-time.After(50 * time.Millisecond):
	}
	r.offer(t, testDocument(2, "a"))
	second := <-answered
	if second.Applied.Revision != 2 || second.Seq <= first.Seq || second.BootID != first.BootID {
		t.Errorf("the second report is %+v", second)
	}
	third := report(t, r, second.Cursor(), "10ms")
	if third.Seq != second.Seq || len(third.Events) != 0 {
		t.Errorf("without news the report is %+v", third)
	}
}

func TestBadAndTooManyReportRequestsAreRefused(t *testing.T) {
	r := start(t, testDocument(1, "a"), nil)
	c, token := client(t, admin().TLS), admin().Token.Reveal()
	for _, query := range []string{"cursor=x", "cursor=x.y", "wait=soon", "wait=-1s"} {
		if response, body := do(t, c, "GET", r.url("admin", muxconfig.ReportPath+"?"+query), token, nil); response.StatusCode != 400 {
			t.Errorf("%s answers %d %s", query, response.StatusCode, body)
		}
	}
	now := report(t, r, "", "0s")
	cursor := now.Cursor()
	var waiting sync.WaitGroup
	for range maxPolls {
		waiting.Go(func() { report(t, r, cursor, "15s") })
	}
	waitFor(t, "the polls", func() bool { return len(r.reporter.slots) == maxPolls })
	if response, _ := do(t, c, "GET", r.url("admin", muxconfig.ReportPath), token, nil); response.StatusCode != 503 || response.Header.Get("Retry-After") == "" {
		t.Errorf("one too many answers %d", response.StatusCode)
	}
	r.hub.changed()
	waiting.Wait()
}

func TestTheFrontSwitchesBetweenHTTPAndHTTPSWithoutARestart(t *testing.T) {
	r := start(t, testDocument(1, "a"), nil)
	pair := admin().TLS
	c := client(t, pair)
	plain, secure := r.url("s3", "/assets"), "https://"+r.Addr("s3").String()+"/assets"
	if response, _ := do(t, c, "HEAD", plain, "", nil); response.StatusCode != 200 {
		t.Fatalf("plain HTTP answers %d", response.StatusCode)
	}
	d := testDocument(2, "a")
	d.Frontend.TLS = &pair
	r.offer(t, d)
	// The connection that is open already carries one more request.
	if response, _ := do(t, c, "HEAD", plain, "", nil); response.StatusCode != 200 || !response.Close {
		t.Errorf("the old connection answers %d, close %t", response.StatusCode, response.Close)
	}
	if response, _ := do(t, c, "HEAD", plain, "", nil); response.StatusCode != 400 {
		t.Errorf("plain HTTP to the HTTPS port answers %d", response.StatusCode)
	}
	if response, _ := do(t, c, "HEAD", secure, "", nil); response.StatusCode != 200 || response.ProtoMajor != 2 {
		t.Errorf("HTTPS answers %d over %s", response.StatusCode, response.Proto)
	}
	other, err := muxconfig.NewAdmin(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	rotated := testDocument(3, "a")
	rotated.Frontend.TLS = &other.TLS
	r.offer(t, rotated)
	if response, _ := do(t, client(t, other.TLS), "HEAD", secure, "", nil); response.StatusCode != 200 {
		t.Errorf("the new certificate answers %d", response.StatusCode)
	}
	r.offer(t, testDocument(4, "a"))
	if response, _ := do(t, client(t), "HEAD", plain, "", nil); response.StatusCode != 200 {
		t.Errorf("back to plain HTTP answers %d", response.StatusCode)
	}
}

func TestNoRequestFailsWhileDocumentsAreSwapped(t *testing.T) {
	r := start(t, testDocument(1, "a", "b"), nil)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	c := &http.Client{Transport: transport, Timeout: 20 * time.Second}
	defer transport.CloseIdleConnections()
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var requests atomic.Int64
	for i := range 4 {
		clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				url := r.url("s3", fmt.Sprintf("/assets/%d/%d", i, n))
				if response, body := do(t, c, "PUT", url, "", strings.NewReader("content")); response.StatusCode != 200 {
					t.Errorf("PUT answers %d %s", response.StatusCode, body)
					return
				}
				if response, body := do(t, c, "GET", url, "", nil); response.StatusCode != 200 || body != "content" {
					t.Errorf("GET answers %d %s", response.StatusCode, body)
					return
				}
				requests.Add(2)
			}
		})
	}
	for revision := int64(2); revision < 60; revision++ {
		d := testDocument(revision, "a", "b")
		// What serves stays first, with other settings and company each time.
		d.Backends[0].MaxInFlight = int32(100 + revision)
		if revision%2 == 0 {
			d.Muxes[0].Members, d.Backends = d.Muxes[0].Members[:1], d.Backends[:1]
		}
		r.offer(t, d)
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	clients.Wait()
	if requests.Load() < 100 {
		t.Errorf("only %d requests ran", requests.Load())
	}
}

// upload begins to store an object of eight bytes, the first of which are begun.
func (r *running) upload(t *testing.T, begun string) (feed *io.PipeWriter, ended chan error) {
	t.Helper()
	body, feed := io.Pipe()
	ended = make(chan error, 1)
	c := client(t)
	request, err := http.NewRequestWithContext(t.Context(), "PUT", r.url("s3", "/assets/slow"), body)
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = 8
	go func() {
		response, err := c.Do(request)
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode != 200 {
				err = fmt.Errorf("status %d", response.StatusCode)
			}
		}
		ended <- err
	}()
	if _, err := feed.Write([]byte(begun)); err != nil {
		t.Fatal(err)
	}
	return feed, ended
}

func TestATerminationFinishesWhatRunsAndGoesOnReporting(t *testing.T) {
	r := start(t, testDocument(1, "a"), func(o *Options) { o.ShutdownDelay = 300 * time.Millisecond })
	c := client(t, admin().TLS)
	if response, _ := do(t, c, "PUT", r.url("s3", "/assets/key"), "", strings.NewReader("x")); response.StatusCode != 200 {
		t.Fatal("the object cannot be stored")
	}
	// An upload that is half done when the signal comes.
	feed, uploaded := r.upload(t, "half")
	waitFor(t, "the upload", func() bool { return r.front.InFlight() > 0 })
	r.stop()
	waitFor(t, "the stop", r.health.stopping.Load)
	if response, _ := do(t, c, "GET", r.url("health", "/readyz"), "", nil); response.StatusCode != 503 {
		t.Errorf("it is ready while it stops: %d", response.StatusCode)
	}
	if response, _ := do(t, client(t), "GET", r.url("s3", "/assets/key"), "", nil); response.StatusCode != 200 || !response.Close {
		t.Errorf("a new request during the delay answers %d, and its connection ends with it: %t", response.StatusCode, response.Close)
	}
	time.Sleep(400 * time.Millisecond)
	if _, err := client(t).Get(r.url("s3", "/assets/key")); err == nil {
		t.Error("a new connection after the delay was taken")
	}
	r.offer(t, testDocument(2, "a"))
	if got := report(t, r, "", "0s"); got.Applied.Revision != 2 {
		t.Errorf("it reports %+v", got.Applied)
	}
	if _, err := feed.Write([]byte("done")); err != nil {
		t.Fatal(err)
	}
	_ = feed.Close()
	if err := <-uploaded; err != nil {
		t.Errorf("the upload that ran failed: %v", err)
	}
	if err := <-r.ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
	r.ended <- nil
}

func TestATerminationCutsWhatTakesTooLong(t *testing.T) {
	r := start(t, testDocument(1, "a"), func(o *Options) { o.DrainTimeout = 50 * time.Millisecond })
	feed, failed := r.upload(t, "half")
	waitFor(t, "the upload", func() bool { return r.front.InFlight() > 0 })
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("Run ended with %v", err)
	}
	r.ended <- nil
	_ = feed.CloseWithError(errors.New("the rest never comes"))
	if err := <-failed; err == nil {
		t.Error("the upload did not fail")
	}
}

func TestAPortThatIsTakenIsAnErrorThatNamesIt(t *testing.T) {
	r := start(t, nil, nil)
	s := newServer(t, func(o *Options) { o.AdminAddress = r.Addr("admin").String() })
	if err := s.Listen(); err == nil || !strings.Contains(err.Error(), "listen for admin") {
		t.Errorf("Listen gave %v", err)
	}
}

// failingSource ends at once.
type failingSource struct{}

func (failingSource) Run(context.Context, func(context.Context, Offer) bool) error {
	return errors.New("nothing to follow")
}

func TestASourceThatFailsEndsTheServer(t *testing.T) {
	s := newServer(t, func(o *Options) { o.Source, o.ShutdownDelay = failingSource{}, time.Hour })
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing to follow") {
		t.Errorf("Run ended with %v", err)
	}
}

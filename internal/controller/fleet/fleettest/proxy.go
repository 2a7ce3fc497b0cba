package fleettest

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// Proxy is a simulated proxy. Its report follows the documents that it is
// given, as a healthy and idle proxy's would; Edit changes it further.
type Proxy struct {
	server *http.Server
	served sync.WaitGroup
	polls  atomic.Int64

	mu       sync.Mutex
	document *muxconfig.Document
	report   muxconfig.Report
	events   []muxconfig.Event
	changed  chan struct{} // closed and replaced when Seq rises
}

var boots atomic.Int64

// Start runs a proxy at ip, with the certificate and token of document.
func Start(network *Network, ip string, document *muxconfig.Document) (*Proxy, error) {
	l, err := network.listen(ip)
	if err != nil {
		return nil, err
	}
	return Serve(l, document), nil
}

// Serve runs a proxy on l, with the certificate and token of document.
func Serve(l net.Listener, document *muxconfig.Document) *Proxy {
	p := &Proxy{changed: make(chan struct{})}
	p.report = muxconfig.Report{
		BootID:    fmt.Sprintf("boot-%d", boots.Add(1)),
		MinSchema: muxconfig.MinSchemaVersion, MaxSchema: muxconfig.SchemaVersion,
	}
	p.Apply(document)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+muxconfig.ReportPath, p.serveReport)
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}
	p.served.Go(func() {
		_ = p.server.Serve(tls.NewListener(l, &tls.Config{
			MinVersion: tls.VersionTLS13, GetCertificate: p.certificate,
		}))
	})
	return p
}

// Polls returns how often the proxy has been asked.
func (p *Proxy) Polls() int64 { return p.polls.Load() }

// Stop ends the proxy as a killed pod would.
func (p *Proxy) Stop() {
	_ = p.server.Close()
	p.served.Wait()
}

// Apply makes document the applied one.
func (p *Proxy) Apply(document *muxconfig.Document) {
	p.Edit(func(r *muxconfig.Report) {
		p.document = document
		r.Applied = &muxconfig.Applied{Revision: document.Revision, Transitions: document.Transitions, Hash: document.Hash}
		r.Rejection = nil
		r.Members = members(document, r.Members)
	})
}

// Reject reports that document was refused.
func (p *Proxy) Reject(document *muxconfig.Document, message string) {
	p.Edit(func(r *muxconfig.Report) {
		r.Rejection = &muxconfig.Rejection{Revision: document.Revision, Hash: document.Hash, Message: message}
	})
}

// Edit changes the report's state.
func (p *Proxy) Edit(edit func(*muxconfig.Report)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	edit(&p.report)
	p.advance()
}

// EditFigures changes figures alone, which wakes no poll.
func (p *Proxy) EditFigures(edit func(*muxconfig.Report)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	edit(&p.report)
}

// Happen adds an event.
func (p *Proxy) Happen(event muxconfig.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance()
	event.Seq, event.Time = p.report.Seq, time.Now()
	p.events = append(p.events, event)
}

// Applied returns the revision that the proxy serves.
func (p *Proxy) Applied() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.report.Applied.Revision
}

func (p *Proxy) advance() {
	p.report.Seq++
	close(p.changed)
	p.changed = make(chan struct{})
}

// members lists the members of document, with what before says of those that
// were there already.
func members(document *muxconfig.Document, before []muxconfig.MemberReport) []muxconfig.MemberReport {
	known := map[string]muxconfig.MemberReport{}
	for _, m := range before {
		known[m.Path+" "+m.UID] = m
	}
	var list []muxconfig.MemberReport
	_ = muxconfig.Walk(document, func(path string, _ *muxconfig.Mux, member *muxconfig.Member) {
		m := muxconfig.MemberReport{Path: path, Backend: member.Backend, Mux: member.Mux, State: muxconfig.StateUp}
		if b := document.Backend(member.Backend); b != nil {
			m.UID = b.UID
			m.Capabilities = []string{muxconfig.CapabilityRange, muxconfig.CapabilityMetadata, muxconfig.CapabilityIdentityNative}
		} else if nested := document.Mux(member.Mux); nested != nil {
			m.UID = nested.UID
		}
		if old, ok := known[path+" "+m.UID]; ok {
			m = old
		}
		if m.State == muxconfig.StateDraining {
			m.State = muxconfig.StateUp
		}
		m.Drain = nil
		if member.Drain != nil {
			m.State = muxconfig.StateDraining
			m.Drain = &muxconfig.DrainReport{Phase: member.Drain.Phase, Done: m.InFlight == 0, InFlight: m.InFlight}
		}
		list = append(list, m)
	})
	return list
}

func (p *Proxy) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	pair := p.document.Admin.TLS
	p.mu.Unlock()
	cert, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key.Reveal()))
	return &cert, err
}

func (p *Proxy) serveReport(w http.ResponseWriter, r *http.Request) {
	p.polls.Add(1)
	p.mu.Lock()
	token := p.document.Admin.Token.Reveal()
	p.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+token {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	boot, seq, err := muxconfig.ParseCursor(r.URL.Query().Get(muxconfig.ReportCursorParam))
	wait, waitErr := time.ParseDuration(r.URL.Query().Get(muxconfig.ReportWaitParam))
	if err := errors.Join(err, waitErr); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for last := false; ; {
		report, changed, err := p.answer(boot, seq, last)
		if report != nil || err != nil {
			_, _ = w.Write(report)
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			last = true
		case <-r.Context().Done():
			return
		}
	}
}

// answer returns the report as it goes out, if it says more than the cursor knows or
// this is the last time to look; else what to wait for. It is encoded here because
// edits change what it points to.
func (p *Proxy) answer(boot string, seq uint64, last bool) ([]byte, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	report := p.report
	if !last && report.BootID == boot && report.Seq <= seq {
		return nil, p.changed, nil
	}
	report.Time = time.Now()
	for _, e := range p.events {
		if boot != report.BootID || e.Seq > seq {
			report.Events = append(report.Events, e)
		}
	}
	encoded, err := json.Marshal(report)
	return encoded, nil, err
}

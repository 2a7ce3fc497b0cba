package proxy

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// maxPolls bounds the report requests that are held at a time: two leaders
// that overlap, and some people who look.
const maxPolls = 16

// reporter serves reports.
type reporter struct {
	hub   *hub
	facts func() facts
	slots chan struct{}
}

func newReporter(h *hub, facts func() facts) *reporter {
	return &reporter{hub: h, facts: facts, slots: make(chan struct{}, maxPolls)}
}

// ServeHTTP implements http.Handler: it answers with the newest report, at once
// or when something has changed since the caller's cursor.
func (p *reporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	bootID, seq, err := muxconfig.ParseCursor(query.Get(muxconfig.ReportCursorParam))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	wait := time.Duration(0)
	if text := query.Get(muxconfig.ReportWaitParam); text != "" {
		if wait, err = time.ParseDuration(text); err != nil || wait < 0 {
			http.Error(w, muxconfig.ReportWaitParam+": must be a duration such as 30s", http.StatusBadRequest)
			return
		}
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests wait for a report", http.StatusServiceUnavailable)
		return
	}
	if !p.hold(r, bootID, seq, min(wait, muxconfig.MaxReportWait)) {
		return
	}
	// The sequence number first: what happens meanwhile comes with the next
	// report once more, rather than never.
	newest, events := p.hub.since(bootID, seq)
	report := p.facts().report()
	report.BootID, report.Seq, report.Events = p.hub.bootID, newest, events
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(report)
}

// hold waits for news. It returns false if the caller left.
func (p *reporter) hold(r *http.Request, bootID string, seq uint64, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		answer, woken := p.hub.news(bootID, seq)
		if answer {
			return true
		}
		select {
		case <-woken:
		case <-timer.C:
			return true
		case <-r.Context().Done():
			return false
		}
	}
}

package fleet

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// Freshness tells how far an Observation can be trusted.
type Freshness string

const (
	// Pending: the proxy has not answered yet, and may still be starting.
	Pending Freshness = "Pending"
	// Live: the report is the proxy's newest.
	Live Freshness = "Live"
	// Silent: the proxy stopped answering; its last report still counts.
	Silent Freshness = "Silent"
	// Lost: the proxy has been silent for longer than the grace period.
	Lost Freshness = "Lost"
)

// Observation is what is known of one proxy.
type Observation struct {
	Target Target
	// Report is the last one received, nil if there was none. It must not
	// be changed.
	Report    *muxconfig.Report
	Freshness Freshness
	// Problem says why the last poll failed; empty while Live.
	Problem string
}

// minInterval keeps a proxy whose state changes all the time, or that does not
// hold polls open, from taking all of a core.
const minInterval = 100 * time.Millisecond

// poller polls one pod.
type poller struct {
	fleet  *Fleet
	target Target
	client *client
	born   time.Time

	// These belong to the fleet's lock.
	cancel context.CancelFunc
	ended  bool
	held   map[string]bool // UIDs, see Fleet.Holders

	mu       sync.Mutex
	report   *muxconfig.Report
	failures int
	silent   time.Time // when failures reached Options.Tries
	lost     bool
	problem  string
}

func newPoller(f *Fleet, t Target) *poller {
	return &poller{fleet: f, target: t, client: newClient(f, t), born: time.Now()}
}

func (p *poller) run(ctx context.Context) {
	defer p.client.close()
	for ctx.Err() == nil {
		asked := time.Now()
		report, err := p.client.poll(ctx, p.cursor(), p.wait())
		if ctx.Err() != nil {
			return
		}
		pause := time.Duration(0)
		if err == nil {
			p.answered(report)
			pause = minInterval - time.Since(asked)
		} else {
			p.failed(err)
			pause = p.pause()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (p *poller) cursor() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.report == nil {
		return ""
	}
	return p.report.Cursor()
}

// wait is how long the next poll may be held open: after a failure the answer
// is wanted at once, to learn soon whether the proxy is there.
func (p *poller) wait() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failures > 0 {
		return 0
	}
	return p.fleet.options.Wait
}

func (p *poller) answered(report *muxconfig.Report) {
	p.mu.Lock()
	before, recovered := p.report, p.failures >= p.fleet.options.Tries
	p.report, p.failures, p.lost, p.problem = report, 0, false, ""
	p.mu.Unlock()

	if recovered {
		p.fleet.options.Log.V(1).Info("proxy answers again", "mux", p.target.Mux, "pod", p.target.Pod)
	}
	if events := p.newEvents(before, report); len(events) > 0 {
		p.fleet.options.Happened(p.target, report, events)
	}
	if before == nil || before.BootID != report.BootID || before.Seq != report.Seq {
		uids := map[string]bool{}
		for i := range report.Members {
			uids[report.Members[i].UID] = true
		}
		p.fleet.holds(p, uids)
	}
	state := recovered || before == nil || before.BootID != report.BootID || before.Seq != report.Seq
	if state || figuresMoved(before, report) {
		change := p.change(before, report, !state)
		if before != nil && before.BootID == report.BootID && !recovered {
			change.Backends, change.Nested = moved(before.Members, report.Members)
		}
		p.fleet.options.Changed(change)
	}
}

// newEvents leaves out what was handed on before, and, in the first report of a
// proxy that was running before this leader saw it, what an earlier leader saw.
func (p *poller) newEvents(before, report *muxconfig.Report) []muxconfig.Event {
	return slices.DeleteFunc(slices.Clone(report.Events), func(e muxconfig.Event) bool {
		switch {
		case before == nil:
			return e.Time.Before(p.born)
		case before.BootID == report.BootID:
			return e.Seq <= before.Seq
		}
		return false
	})
}

func (p *poller) failed(err error) {
	options := p.fleet.options
	p.mu.Lock()
	p.failures++
	p.problem = err.Error()
	turnedSilent := p.failures == options.Tries
	if turnedSilent {
		p.silent = time.Now()
	}
	turnedLost := p.failures >= options.Tries && !p.lost && time.Since(p.silent) >= options.Grace
	p.lost = p.lost || turnedLost
	report := p.report
	p.mu.Unlock()
	if turnedSilent {
		options.Log.Info("proxy does not answer", "mux", p.target.Mux, "pod", p.target.Pod, "error", err.Error())
	}
	if turnedSilent || turnedLost {
		options.Changed(p.change(report, nil, false))
	}
}

// pause grows with each failure, up to a bound, and never goes past the end of
// the grace period by much.
func (p *poller) pause() time.Duration {
	options := p.fleet.options
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := options.MaxBackoff
	if shift := p.failures - 1; shift < 16 {
		pause = min(options.MinBackoff<<shift, options.MaxBackoff)
	}
	pause = pause/2 + rand.N(pause/2+1)
	if left := options.Grace - time.Since(p.silent); p.failures >= options.Tries && !p.lost && left > 0 {
		pause = min(pause, left)
	}
	return pause
}

func (p *poller) observation() Observation {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := Observation{Target: p.target, Report: p.report, Problem: p.problem, Freshness: Live}
	switch {
	case p.lost:
		o.Freshness = Lost
	case p.failures >= p.fleet.options.Tries:
		o.Freshness = Silent
	case p.report == nil:
		o.Freshness = Pending
	}
	return o
}

func (p *poller) change(before, after *muxconfig.Report, figuresOnly bool) Change {
	c := Change{Mux: p.target.Mux, FiguresOnly: figuresOnly}
	for _, report := range []*muxconfig.Report{before, after} {
		if report == nil {
			continue
		}
		for i := range report.Members {
			m := &report.Members[i]
			if m.Backend != "" {
				c.Backends = append(c.Backends, m.Backend)
			}
			if m.Mux != "" {
				c.Nested = append(c.Nested, m.Mux)
			}
		}
	}
	slices.Sort(c.Backends)
	slices.Sort(c.Nested)
	c.Backends, c.Nested = slices.Compact(c.Backends), slices.Compact(c.Nested)
	return c
}

// moved returns the names of the backends that two reports say different things
// of, and of the muxes in which they, or other such members, are.
func moved(before, after []muxconfig.MemberReport) (backends, muxes []string) {
	known := make(map[string]*muxconfig.MemberReport, len(before))
	for i := range before {
		known[before[i].Path] = &before[i]
	}
	inside := map[string]*muxconfig.MemberReport{}
	var paths []string
	note := func(m *muxconfig.MemberReport) {
		paths = append(paths, m.Path)
		if m.Backend != "" {
			backends = append(backends, m.Backend)
		}
	}
	for i := range after {
		m := &after[i]
		if m.Mux != "" {
			inside[m.Path] = m
		}
		if old := known[m.Path]; old == nil || !reflect.DeepEqual(old, m) {
			note(m)
		}
		delete(known, m.Path)
	}
	for _, gone := range known {
		if gone.Mux != "" {
			inside[gone.Path] = gone
		}
		note(gone)
	}
	for path, m := range inside {
		if slices.ContainsFunc(paths, func(one string) bool { return one == path || strings.HasPrefix(one, path+"/") }) {
			muxes = append(muxes, m.Mux)
		}
	}
	slices.Sort(backends)
	slices.Sort(muxes)
	return slices.Compact(backends), slices.Compact(muxes)
}

// figuresMoved compares two reports with the same state. Only figures that
// requests of clients move count, so that nothing is written when none come.
func figuresMoved(before, after *muxconfig.Report) bool {
	return before.Totals != after.Totals ||
		!slices.EqualFunc(before.Members, after.Members, func(a, b muxconfig.MemberReport) bool {
			return a.Path == b.Path && a.Figures == b.Figures && totalsOf(a) == totalsOf(b)
		})
}

func totalsOf(m muxconfig.MemberReport) muxconfig.Totals {
	if m.Totals == nil {
		return muxconfig.Totals{}
	}
	return *m.Totals
}

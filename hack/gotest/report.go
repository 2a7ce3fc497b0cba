package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

type counts struct{ passed, failed, skipped int }

func (c counts) String() string {
	s := fmt.Sprintf("%d passed, %d failed", c.passed, c.failed)
	if c.skipped > 0 {
		s += fmt.Sprintf(", %d skipped", c.skipped)
	}
	return s
}

func (c *counts) plus(o counts) {
	c.passed += o.passed
	c.failed += o.failed
	c.skipped += o.skipped
}

// packageRun is what is known of a package whose tests have not ended yet.
type packageRun struct {
	counts
	started time.Time
	output  map[string]string // by test that has not ended; the key "" is the package's own
}

// report turns events into what a person reads, and counts. Its methods are called from one goroutine.
type report struct {
	out     io.Writer
	live    bool
	total   counts
	running map[string]*packageRun
	skips   []string
}

func newReport(out io.Writer, live bool) *report {
	return &report{out: out, live: live, running: map[string]*packageRun{}}
}

// add takes one event and says whether it showed something.
func (r *report) add(e event) bool {
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
		return true
	case "build-fail":
		return false // the package's own fail event follows
	}
	p := r.running[e.Package]
	if p == nil {
		p = &packageRun{started: time.Now(), output: map[string]string{}}
		r.running[e.Package] = p
	}
	switch {
	case e.Action == "output":
		return r.addOutput(p, e)
	case e.Action != "pass" && e.Action != "fail" && e.Action != "skip":
		return false
	case e.Test == "":
		r.endPackage(p, e)
		return true
	}
	return r.endTest(p, e)
}

func (r *report) addOutput(p *packageRun, e event) bool {
	p.plus(specs(e.Output))
	p.output[e.Test] += e.Output
	if r.live {
		fmt.Fprint(r.out, e.Output)
	}
	return r.live
}

func (r *report) endTest(p *packageRun, e event) bool {
	output := p.output[e.Test]
	delete(p.output, e.Test)
	switch e.Action {
	case "pass":
		p.passed++
		return false
	case "skip":
		p.skipped++
		r.skips = append(r.skips, fmt.Sprintf("%s %s: %s", e.Package, e.Test, skipReason(output)))
		return false
	}
	p.failed++
	if !r.live {
		fmt.Fprintf(r.out, "FAILED %s %s\n%s", e.Package, e.Test, output)
	}
	return !r.live
}

// endPackage shows the package's line. Tests that never ended (a panic, a time limit, a data race at exit) and the
// package's own output explain a failure.
func (r *report) endPackage(p *packageRun, e event) {
	delete(r.running, e.Package)
	if e.Action == "fail" {
		if p.failed == 0 {
			p.failed++
		}
		if !r.live {
			for _, test := range slices.Sorted(maps.Keys(p.output)) {
				fmt.Fprint(r.out, p.output[test])
			}
		}
	}
	r.total.plus(p.counts)
	if p.counts == (counts{}) {
		fmt.Fprintf(r.out, "-       %s: no tests\n", e.Package)
		return
	}
	verdict := "ok    "
	if p.failed > 0 {
		verdict = "FAILED"
	}
	fmt.Fprintf(r.out, "%s  %s: %s (%.1f s)\n", verdict, e.Package, p.counts, e.Elapsed)
}

func (r *report) stillRunning() {
	for _, name := range slices.Sorted(maps.Keys(r.running)) {
		fmt.Fprintf(r.out, "...     %s: %s so far (%.0f s)\n", name, r.running[name].counts, time.Since(r.running[name].started).Seconds())
	}
	if len(r.running) == 0 {
		fmt.Fprintln(r.out, "...     building")
	}
}

// close lists the skipped tests and returns the counts of the whole run. A package that never ended has failed.
func (r *report) close() counts {
	for _, name := range slices.Sorted(maps.Keys(r.running)) {
		r.endPackage(r.running[name], event{Action: "fail", Package: name})
	}
	for _, s := range r.skips {
		fmt.Fprintf(r.out, "skipped %s\n", s)
	}
	return r.total
}

var skipLocation = regexp.MustCompile(`^\s*[\w.-]+\.go:\d+: `)

// skipReason is the first line that the test itself wrote.
func skipReason(output string) string {
	for line := range strings.Lines(output) {
		if loc := skipLocation.FindString(line); loc != "" {
			return strings.TrimSpace(line[len(loc):])
		}
	}
	return "it gives no reason"
}

var (
	colour    = regexp.MustCompile(`\x1b\[[0-9;]*m`)
	specCount = regexp.MustCompile(`-- (\d+) Passed \| (\d+) Failed \| (\d+) Pending \| (\d+) Skipped`)
)

// specs reads the closing line of a Ginkgo suite; any other line counts nothing. Pending specs count as skipped.
func specs(line string) counts {
	m := specCount.FindStringSubmatch(colour.ReplaceAllString(line, ""))
	if m == nil {
		return counts{}
	}
	var n [4]int
	for i := range n {
		n[i], _ = strconv.Atoi(m[i+1]) // the expression lets only digits through
	}
	return counts{passed: n[0], failed: n[1], skipped: n[2] + n[3]}
}

package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// durations of the same thing many times, in any order.
type durations []time.Duration

// spread are the durations from began to each moment.
func spread(began time.Time, at map[string]time.Time) durations {
	var d durations
	for _, one := range at {
		d = append(d, max(0, one.Sub(began)))
	}
	return d
}

// at returns the value that a share of all are not above.
func (d *durations) at(share float64) time.Duration {
	if len(*d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(*d))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// String is for a pointer, so that it may be asked before all are there.
func (d *durations) String() string {
	return fmt.Sprintf("p50 %s, p99 %s, last %s", short(d.at(0.5)), short(d.at(0.99)), short(d.at(1)))
}

func short(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// report is what was measured.
type report struct {
	costs []phaseCost

	firstStart, change, rotate, rotateTaken, flapDown, flapUp durations

	restart                              time.Duration
	restartWrites, idleWrites            int
	movingWrites                         float64
	movingCPU, idleCPU                   float64 // cores
	afterStart, afterRotation, afterFlap usage
	afterMoving, afterRestart, afterIdle usage
}

func (r *report) markdown(s sizes) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# The operator at scale\n\n")
	command := "make bench-scale"
	if flags := strings.Join(os.Args[1:], " "); flags != "" {
		command += fmt.Sprintf(" SCALEFLAGS=%q", flags)
	}
	fmt.Fprintf(&out, "Written by `%s`: %d StorageMuxes with %d StorageBackends in one namespace, all of which name one Secret, "+
		"and %d simulated proxies that speak the real report protocol over TLS, against a real API server. "+
		"API server, etcd (without fsync), proxies and operator shared one machine (%s); the operator ran with `--kube-api-qps 500 "+
		"--kube-api-burst 1000 --max-concurrent-reconciles 16`, without a lease.\n\n",
		command, s.muxes, s.muxes*s.backendsPerMux, s.muxes*s.proxiesPerMux, s.machine)
	fmt.Fprintf(&out, "| what | figure | target |\n|---|---|---|\n")
	row := func(what, figure, target string) { fmt.Fprintf(&out, "| %s | %s | %s |\n", what, figure, target) }
	row("first start, from nothing but the users' objects to every mux Programmed, the making of pods included", r.firstStart.String(), "")
	row("restart, until every proxy was asked again", short(r.restart), "")
	row("API writes of a restart", fmt.Sprint(r.restartWrites), "0")
	row(fmt.Sprintf("one member changed, to acknowledged by all proxies in status, %d times", len(r.change)), r.change.String(), "p99 under 1 s")
	row("the Secret that every mux uses rotated, to taken up by the proxies", r.rotateTaken.String(), "")
	row("the same, to acknowledged in status", r.rotate.String(), "")
	row(fmt.Sprintf("%d members go down at once, to status", s.flaps), r.flapDown.String(), "under 1 s")
	row(fmt.Sprintf("%d members come back at once, to status", s.flaps), r.flapUp.String(), "under 1 s")
	row(fmt.Sprintf("API writes a second while figures move everywhere, over %s", s.moving), fmt.Sprintf("%.1f", r.movingWrites), "at most 10")
	row(fmt.Sprintf("API writes in %s of idleness", s.idle), fmt.Sprint(r.idleWrites), "0")
	row("memory of the operator, resident: after the start, rotation, restart, idleness, moving figures", fmt.Sprintf("%.0f, %.0f, %.0f, %.0f, %.0f MiB",
		r.afterStart.resident, r.afterRotation.resident, r.afterRestart.resident, r.afterIdle.resident, r.afterMoving.resident), "under 400 MiB")
	row("its peak: before the restart, after it", fmt.Sprintf("%.0f, %.0f MiB", r.afterFlap.peak, r.afterMoving.peak), "")
	row("CPU of the operator for the first start", short(r.afterStart.cpu), "")
	row("cores of the operator while figures move, while idle", fmt.Sprintf("%.2f, %.3f", r.movingCPU, r.idleCPU), "")
	fmt.Fprintf(&out, "\n## What each phase cost\n\nCores are those that each process took on average over the whole phase, pauses included. "+
		"Requests are all that the API server counted without watches, those of the benchmark itself among them.\n\n")
	fmt.Fprintf(&out, "| phase | took | cores | requests to the API server |\n|---|---|---|---|\n")
	for _, c := range r.costs {
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", c.phase, short(c.took), c.cores, c.requests)
	}
	fmt.Fprint(&out, readingTheFigures)
	return out.String()
}

// phaseCost is what one phase took of the machine and of the API server.
type phaseCost struct {
	phase           string
	took            time.Duration
	cores, requests string
}

// readingTheFigures says what bounds them.
const readingTheFigures = `
## What bounds these figures

The API server. For each write of a status it decodes, validates, merges managed fields and tells watchers, which costs it several
milliseconds of a core, a multiple of what the operator takes for the same write; with all processes on the same cores that bounds how many
statuses change in a second. A change of one StorageBackend takes one write of its mux's document and two of statuses, and is
far from that bound. A flap of many members needs one write for each mux and one for each StorageBackend, whatever the number of
proxies: muxes go first. Where the API server has cores of its own, the operator's part is what is left.
`

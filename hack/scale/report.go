package main

import (
	"fmt"
	"math"
	"runtime"
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
func (d durations) at(share float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

func (d durations) String() string {
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
	firstStart, change, rotate, rotateTaken, flapDown, flapUp durations

	restart                              time.Duration
	restartWrites, idleWrites            int
	movingWrites                         float64
	movingCPU, idleCPU                   float64 // cores
	afterStart, afterRotation            usage
	afterMoving, afterRestart, afterIdle usage
}

func (r report) markdown(s sizes) string {
	var out strings.Builder
	fmt.Fprintf(&out, "# The operator at scale\n\n")
	fmt.Fprintf(&out, "Written by `make bench-scale`: %d StorageMuxes with %d StorageBackends in one namespace, all of which name one Secret, "+
		"and %d simulated proxies that speak the real report protocol over TLS, against a real API server. "+
		"API server, etcd (without fsync), proxies and operator shared one machine with %d cores; the operator ran with `--kube-api-qps 500 "+
		"--max-concurrent-reconciles 16`, without a lease.\n\n", s.muxes, s.muxes*s.backendsPerMux, s.muxes*s.proxiesPerMux, runtime.NumCPU())
	fmt.Fprintf(&out, "| what | figure | target |\n|---|---|---|\n")
	row := func(what, figure, target string) { fmt.Fprintf(&out, "| %s | %s | %s |\n", what, figure, target) }
	row("first start, from nothing but the users' objects to every mux Programmed, the making of pods included", r.firstStart.String(), "")
	row("restart, until every proxy was asked again", short(r.restart), "")
	row("API requests of a restart that could write: one apply of each child, which changes nothing", fmt.Sprint(r.restartWrites), "")
	row(fmt.Sprintf("one member changed, to acknowledged by all proxies in status, %d times", len(r.change)), r.change.String(), "p99 under 1 s")
	row("the Secret that every mux uses rotated, to taken up by the proxies", r.rotateTaken.String(), "")
	row("the same, to acknowledged in status", r.rotate.String(), "")
	row(fmt.Sprintf("%d members go down at once, to status", s.flaps), r.flapDown.String(), "under 1 s")
	row(fmt.Sprintf("%d members come back at once, to status", s.flaps), r.flapUp.String(), "under 1 s")
	row(fmt.Sprintf("API writes a second while figures move everywhere, over %s", s.moving), fmt.Sprintf("%.1f", r.movingWrites), "at most 10")
	row(fmt.Sprintf("API writes in %s of idleness", s.idle), fmt.Sprint(r.idleWrites), "0")
	row("memory of the operator, resident: after the start, rotation, moving figures, restart, idleness", fmt.Sprintf("%.0f, %.0f, %.0f, %.0f, %.0f MiB",
		r.afterStart.resident, r.afterRotation.resident, r.afterMoving.resident, r.afterRestart.resident, r.afterIdle.resident), "under 400 MiB")
	row("its peak: before the restart, after it", fmt.Sprintf("%.0f, %.0f MiB", r.afterMoving.peak, r.afterIdle.peak), "")
	row("CPU of the operator for the first start", short(r.afterStart.cpu), "")
	row("cores of the operator while figures move, while idle", fmt.Sprintf("%.2f, %.3f", r.movingCPU, r.idleCPU), "")
	return out.String()
}

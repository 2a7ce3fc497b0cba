package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// target is a ratio that is wanted of a run, and what it came to.
type target struct {
	what      string
	want, got float64
	atMost    bool
}

func (t target) line() string {
	sign, met := "at least", t.got >= t.want
	if t.atMost {
		sign, met = "at most", t.got <= t.want
	}
	switch {
	case math.IsNaN(t.got) || math.IsInf(t.got, 0):
		return fmt.Sprintf("| %s | %s %g | not measured | |\n", t.what, sign, t.want)
	case met:
		return fmt.Sprintf("| %s | %s %g | %.2f | met |\n", t.what, sign, t.want, t.got)
	default:
		return fmt.Sprintf("| %s | %s %g | %.2f | missed |\n", t.what, sign, t.want, t.got)
	}
}

// best returns the best figure of the peers whose names contain one of names.
func (t sideBySide) best(row workRow, figure func(*sample) float64, better func(a, b float64) bool, names ...string) float64 {
	best := math.NaN()
	for i, p := range t.paths {
		for _, name := range names {
			if p.name == name && row.failed[i] == nil {
				if got := row.over(i, figure); math.IsNaN(best) || better(got, best) {
					best = got
				}
			}
		}
	}
	return best
}

func more(a, b float64) bool { return a > b }
func less(a, b float64) bool { return a < b }

// of returns StorageMux's figure.
func (t sideBySide) of(row workRow, figure func(*sample) float64) float64 {
	for i, p := range t.paths {
		if p.name == "storagemux" && row.failed[i] == nil {
			return row.over(i, figure)
		}
	}
	return math.NaN()
}

// targets are those that the table has rows for.
func (t sideBySide) targets() (list []target) {
	proxies := []string{"nginx", "haproxy"}
	add := func(row workRow, versus string, throughput, cpu float64, names ...string) {
		if !slices.ContainsFunc(t.paths, func(p *path) bool { return slices.Contains(names, p.name) }) {
			return
		}
		where := fmt.Sprintf("%s: %s, against %s", strings.ToLower(t.title), row.work, versus)
		list = append(list, target{what: where + ", requests/s", want: throughput,
			got: t.of(row, perSecond) / t.best(row, perSecond, more, names...)})
		if cpu > 0 {
			list = append(list, target{what: where + ", CPU a request", want: cpu, atMost: true,
				got: t.of(row, perCPU) / t.best(row, perCPU, less, names...)})
		}
	}
	p50 := func(row workRow, path int) float64 {
		return row.over(path, func(s *sample) float64 { return s.latency.quantile(0.5).Seconds() * 1e3 })
	}
	last := len(t.paths) - 1
	for _, row := range t.rows {
		w := row.work
		switch {
		case w.rate > 0:
			list = append(list, target{what: strings.ToLower(t.title) + ": " + w.String() + ", p50 more than direct, ms", want: 0.5, atMost: true, got: p50(row, last) - p50(row, 0)})
		case w.op == "RANGE" || w.op == "LIST":
			list = append(list, target{what: strings.ToLower(t.title) + ": " + w.String() + ", p50 of direct less 0.3 ms", want: 1.2, atMost: true, got: (p50(row, last) - 0.3) / p50(row, 0)})
		case t.paths[0].name == "one member":
			list = append(list, target{what: strings.ToLower(t.title) + ": " + w.String() + ", p50 of three to that of one", want: 1.15, atMost: true, got: p50(row, 1) / p50(row, 0)})
		}
		if w.conns != 16 || w.rate > 0 {
			continue
		}
		switch {
		case w.op == "GET" && w.size == 1<<10:
			add(row, "the better of nginx and HAProxy", 0.7, 2.5, proxies...)
		case w.op == "GET" && w.size == 64<<10:
			add(row, "the better of nginx and HAProxy", 0.8, 2, proxies...)
		case w.op == "GET" && w.size == 8<<20:
			add(row, "the better of nginx and HAProxy", 0.95, 1.1, proxies...)
		case w.op == "PUT" && w.size >= 64<<10 && w.hashed:
			add(row, "the better of nginx and HAProxy", 0.6, 0, proxies...)
		case w.op == "PUT" && w.size >= 64<<10:
			add(row, "the better of nginx and HAProxy", 0.9, 0, proxies...)
		}
		if w.op == "GET" && w.size <= 64<<10 {
			add(row, "the better of versitygw s3 and rclone", 2, 0.5, "versitygw s3", "rclone")
		}
	}
	return list
}

// judged is the table of all targets.
func (r *report) judged() string {
	var b strings.Builder
	for _, t := range r.tables {
		for _, one := range t.targets() {
			b.WriteString(one.line())
		}
	}
	for _, one := range r.targets {
		b.WriteString(one.line())
	}
	if b.Len() == 0 {
		return ""
	}
	return "## Targets\n\n| what | wanted | ratio | |\n|---|---|---|---|\n" + b.String() + "\n"
}

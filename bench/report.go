package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// report is what a run has found.
type report struct {
	tables  []sideBySide
	graphs  []graph
	targets []target // beyond those of the tables
}

// sideBySide is a table of works by paths.
type sideBySide struct {
	title, text string
	paths       []*path
	rows        []workRow
}

type workRow struct {
	work work
	// samples and failed are by path: one of both is there.
	samples [][]*sample
	failed  []error
}

// over is the median of a figure over the rounds of a path.
func (r workRow) over(path int, figure func(*sample) float64) float64 {
	var values []float64
	for _, s := range r.samples[path] {
		values = append(values, figure(s))
	}
	return median(values)
}

func perSecond(s *sample) float64 { return s.perSecond() }
func perCPU(s *sample) float64    { return s.cpu.Seconds() / float64(s.requests) * 1000 }

func (t sideBySide) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "## %s\n\n%s\n\n", t.title, t.text)
	for _, p := range t.paths {
		fmt.Fprintf(b, "- **%s**: %s\n", p.name, p.note)
	}
	for _, row := range t.rows {
		fmt.Fprintf(b, "\n### %s\n\n| path | requests/s | MB/s | p50 ms | p99 ms | CPU s per 1,000 | CPU s per GiB | peak MiB | of direct | of best peer |\n|---|---|---|---|---|---|---|---|---|---|\n", row.work)
		direct := row.over(0, perSecond)
		for i, p := range t.paths {
			if err := row.failed[i]; err != nil {
				fmt.Fprintf(b, "| %s | %s |\n", p.name, strings.ReplaceAll(err.Error(), "|", " ")+strings.Repeat(" | –", 8))
				continue
			}
			rate := row.over(i, perSecond)
			best := 0.0
			for j, other := range t.paths {
				if other.peer && j != i && row.failed[j] == nil {
					best = max(best, row.over(j, perSecond))
				}
			}
			perGiB := "–"
			if row.work.size > 0 && row.work.op != "HEAD" {
				perGiB = fmt.Sprintf("%.2f", row.over(i, func(s *sample) float64 { return s.cpu.Seconds() / max(1, float64(s.bytes)) * (1 << 30) }))
			}
			bestText := "–"
			if best > 0 {
				bestText = fmt.Sprintf("%.2f", rate/best)
			}
			fmt.Fprintf(b, "| %s | %.0f | %.1f | %.2f | %.2f | %.3f | %s | %.0f | %.2f | %s |\n", p.name, rate,
				row.over(i, func(s *sample) float64 { return float64(s.bytes) / s.took.Seconds() / 1e6 }),
				row.over(i, func(s *sample) float64 { return float64(s.latency.quantile(0.5).Microseconds()) / 1e3 }),
				row.over(i, func(s *sample) float64 { return float64(s.latency.quantile(0.99).Microseconds()) / 1e3 }),
				row.over(i, perCPU),
				perGiB,
				row.over(i, func(s *sample) float64 { return float64(s.memory) / (1 << 20) }),
				rate/direct, bestText)
		}
	}
	b.WriteString("\n")
}

func (r *report) markdown(run *bench) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmarks\n\nWritten by `make bench`. Everything runs on loopback of one machine, the load, the paths and the stores on the same cores: "+
		"compare ratios within a table, not figures across runs. A figure is the median of %d interleaved rounds of %s.\n\n", run.rounds, run.during)
	fmt.Fprintf(&b, "| | |\n|---|---|\n| date | %s |\n| machine | %s, %d cores, Linux %s |\n| Go | %s |\n", time.Now().UTC().Format("2006-01-02"), cpuModel(), runtime.NumCPU(), output("uname", "-r"), runtime.Version())
	for _, v := range [][]string{{"storagemux", run.storagemux, "version"}, {"versitygw", run.versitygw, "--version"}, {"nginx", "nginx", "-v"}, {"haproxy", "haproxy", "-v"}, {"rclone", run.rcloneBinary, "version"}} {
		fmt.Fprintf(&b, "| %s | %s |\n", v[0], output(v[1], v[2:]...))
	}
	b.WriteString("\n")
	b.WriteString(r.judged())
	for _, t := range r.tables {
		t.markdown(&b)
	}
	for i := range r.graphs {
		g := &r.graphs[i]
		fmt.Fprintf(&b, "## %s\n\n![%s](benchmarks/%s.svg)\n\n%s\n\n", g.title, g.title, g.name, g.text)
		for _, figure := range g.figures {
			fmt.Fprintf(&b, "- %s\n", figure)
		}
		if g.name != "death" { // whose points are a hundred a line
			for _, s := range g.series {
				var points []string
				for j := range s.x {
					points = append(points, number(s.x[j])+": "+number(s.y[j]))
				}
				fmt.Fprintf(&b, "- %s: %s\n", s.name, strings.Join(points, ", "))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func (r *report) write(dir string, run *bench) error {
	if err := os.MkdirAll(filepath.Join(dir, "benchmarks"), 0o755); err != nil {
		return err
	}
	for i := range r.graphs {
		g := &r.graphs[i]
		if err := os.WriteFile(filepath.Join(dir, "benchmarks", g.name+".svg"), []byte(g.svg()), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "benchmarks.md"), []byte(r.markdown(run)), 0o644)
}

// output is the first line that a program prints.
func output(program string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return "?"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

func cpuModel() string {
	data, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "?"
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), ":"))
		}
	}
	return "?"
}

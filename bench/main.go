package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// bench is one run.
type bench struct {
	// The programs that are measured.
	storagemux, versitygw, rcloneBinary, self string

	dir, shm string
	short    bool
	// only, work and path narrow the run to what has them in its name.
	only, work, path string
	profiles         string
	rounds           int
	during           time.Duration
	processes        []*process
	report           report
}

func main() {
	b := &bench{}
	origin := flag.String("origin", "", "be a store of this kind instead: light or verify")
	address := flag.String("address", "", "where that store listens")
	out := flag.String("out", "docs", "folder for benchmarks.md and its graphs")
	flag.StringVar(&b.storagemux, "storagemux", "bin/storagemux", "the program under test")
	flag.StringVar(&b.versitygw, "versitygw", "versitygw", "versitygw")
	flag.StringVar(&b.rcloneBinary, "rclone", "rclone", "rclone 1.65 or later")
	flag.BoolVar(&b.short, "short", false, "fewer sizes and connections, in ten minutes")
	flag.StringVar(&b.only, "only", "", "measure only parts whose name contains this, and print instead of writing")
	flag.StringVar(&b.work, "work", "", "with -only: only works whose name contains this, e.g. 'GET 64 KiB'")
	flag.StringVar(&b.path, "path", "", "with -only: only direct and paths whose name contains this")
	flag.StringVar(&b.profiles, "profiles", "", "folder for processor profiles of storagemux, one of each of its samples")
	flag.IntVar(&b.rounds, "rounds", 0, "interleaved rounds of each measurement (3, with -short 2)")
	flag.DurationVar(&b.during, "during", 0, "how long each round of each path takes (2 s, with -short 1 s)")
	flag.Parse()
	if *origin != "" {
		fail(serveOrigin(*origin, *address))
		return
	}
	usual, rounds := 2*time.Second, 3
	if b.short {
		usual, rounds = time.Second, 2
	}
	if b.during == 0 {
		b.during = usual
	}
	if b.rounds == 0 {
		b.rounds = rounds
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	fail(b.run(ctx, *out))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, out string) (err error) {
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "storagemux-bench-*"); err != nil {
		return err
	}
	if b.shm, err = os.MkdirTemp("/dev/shm", "storagemux-bench-*"); err != nil {
		return err
	}
	defer func() {
		b.stopAll()
		err = errors.Join(err, os.RemoveAll(b.dir), os.RemoveAll(b.shm))
	}()
	parts := []struct {
		name string
		run  func(context.Context) error
	}{
		{"side by side over versitygw", b.overVersitygw},
		{"side by side over a light origin", b.overLight},
		{"modes", b.modes},
		{"open loop", b.openLoop},
		{"fan-out held to 20 MiB/s", b.heldFanOut},
		{"death of a backend", b.deaths},
		{"cost of a fan-out", b.fanOutCost},
		{"a mirror that slows down", b.slowMirror},
		{"memory", b.memory},
		{"merged lists", b.lists},
		{"drains", b.drains},
	}
	for _, part := range parts {
		if !strings.Contains(part.name, b.only) {
			continue
		}
		began := time.Now()
		fmt.Fprintf(os.Stderr, "bench: %s ...\n", part.name)
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		b.stopAll()
		fmt.Fprintf(os.Stderr, "bench: %s: done in %s\n", part.name, time.Since(began).Round(time.Second))
	}
	if b.only != "" {
		fmt.Print(b.report.markdown(b))
		return nil
	}
	return b.report.write(filepath.Clean(out), b)
}

func (b *bench) stopAll() {
	for _, p := range slices.Backward(b.processes) {
		p.stop()
	}
	b.processes = nil
}

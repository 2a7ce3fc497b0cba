package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// measure runs the works through all paths in interleaved rounds and reports the
// medians.
func (b *bench) measure(ctx context.Context, title, text string, paths []*path, works []work) error {
	paths = slices.DeleteFunc(slices.Clone(paths), func(p *path) bool { return p.name != "direct" && !strings.Contains(p.name, b.path) })
	t := sideBySide{title: title, text: text, paths: paths}
	for _, w := range works {
		if !strings.Contains(w.String(), b.work) {
			continue
		}
		row := workRow{work: w, samples: make([][]*sample, len(paths)), failed: make([]error, len(paths))}
		for round := range b.rounds {
			for i := range paths {
				at := (i + round) % len(paths) // nobody is always first
				p := paths[at]
				if row.failed[at] != nil {
					continue
				}
				s, err := b.sample(ctx, w, p)
				switch {
				case err != nil && p.peer && ctx.Err() == nil:
					// What a peer cannot do is a line of the report.
					row.samples[at], row.failed[at] = nil, err
				case err != nil:
					return fmt.Errorf("%s through %s: %w", w, p.name, err)
				default:
					row.samples[at] = append(row.samples[at], s)
				}
			}
		}
		t.rows = append(t.rows, row)
		fmt.Fprintf(os.Stderr, "bench:   %s\n", w)
	}
	b.report.tables = append(b.report.tables, t)
	return nil
}

// sample is one round of one work through one path.
func (b *bench) sample(ctx context.Context, w work, p *path) (*sample, error) {
	during := b.during
	if w.size >= 64<<20 {
		during *= 3
	}
	resetPeak(p.processes)
	before, err := cpu(p.processes)
	if err != nil {
		return nil, err
	}
	profiled := b.profile(p, fmt.Sprintf("%s through %s", w, p.name), during)
	s, err := load(ctx, w, p.address, p.host, during, nil)
	if err := errors.Join(err, <-profiled); err != nil {
		return nil, err
	}
	after, err := cpu(p.processes)
	if err != nil {
		return nil, err
	}
	s.cpu = after - before
	s.memory, err = peakMemory(p.processes)
	return s, err
}

// fill stores the objects that are read.
func fill(ctx context.Context, p *path, sizes []int64, listed int) error {
	c := &client{address: p.address}
	defer c.close()
	put := func(key string, body []byte) error {
		head, err := signed("PUT", p.host, "/"+bucket+"/"+key, "", nil, body, true)
		if err != nil {
			return err
		}
		status, _, err := c.do(head, body, false, time.Minute)
		if err == nil && status != 200 {
			err = fmt.Errorf("status %d", status)
		}
		if err != nil {
			return fmt.Errorf("put %s: %w", key, err)
		}
		return ctx.Err()
	}
	for _, size := range sizes {
		if err := put(keyOf(size), noise(size)); err != nil {
			return err
		}
	}
	for i := range listed {
		if err := put(fmt.Sprintf("list/%05d", i), []byte("x")); err != nil {
			return err
		}
	}
	return nil
}

// works is every op and size that is asked for at every number of connections.
func (b *bench) works(sizes []int64, conns []int) []work {
	var list []work
	for _, n := range conns {
		for _, size := range sizes {
			list = append(list, work{op: "GET", size: size, conns: n}, work{op: "PUT", size: size, conns: n})
			if size == 64<<10 || size == 8<<20 {
				list = append(list, work{op: "PUT", size: size, conns: n, hashed: true})
			}
		}
		list = append(list, work{op: "HEAD", size: 1 << 10, conns: n})
	}
	return list
}

func (b *bench) shape() (sizes []int64, conns []int) {
	if b.short {
		return []int64{1 << 10, 64 << 10, 8 << 20}, []int{16}
	}
	return []int64{1 << 10, 64 << 10, 8 << 20, 256 << 20}, []int{1, 16, 64}
}

// overVersitygw goes through every path to a real store.
func (b *bench) overVersitygw(ctx context.Context) error {
	sizes, conns := b.shape()
	origin, err := b.origin("versitygw")
	if err != nil {
		return err
	}
	if err := fill(ctx, origin, append([]int64{1 << 20}, sizes...), 10000); err != nil {
		return err
	}
	paths, err := b.peers(origin)
	if err != nil {
		return err
	}
	works := b.works(sizes, conns)
	works = append(works, work{op: "LIST", conns: 4}, work{op: "RANGE", size: 1 << 20, conns: 16})
	return b.measure(ctx, "Over versitygw", "The origin is versitygw over tmpfs, which verifies what it gets, and is the limit of every path.", paths, works)
}

// overLight goes through them to an origin that is not the limit.
func (b *bench) overLight(ctx context.Context) error {
	sizes, conns := b.shape()
	origin, err := b.origin("light")
	if err != nil {
		return err
	}
	paths, err := b.peers(origin)
	if err != nil {
		return err
	}
	sizes = slices.DeleteFunc(sizes, func(n int64) bool { return n > 8<<20 })
	works := slices.DeleteFunc(b.works(sizes, conns), func(w work) bool { return w.op == "PUT" && w.hashed })
	// rclone reads back what it wrote, which this origin does not keep.
	return b.measure(ctx, "Over a light origin", "The origin answers from memory and discards what it gets, so that the path is the limit.", paths, works)
}

// peers are all paths to one origin.
func (b *bench) peers(origin *path) ([]*path, error) {
	paths := []*path{origin}
	for _, make := range []func(*path) (*path, error){
		b.nginx, b.haproxy, b.gateway,
		func(o *path) (*path, error) { return b.rclone(o) },
		func(o *path) (*path, error) { return b.mux("storagemux", "failover", "replicated", o) },
	} {
		p, err := make(origin)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// modes compares the modes with one backend.
func (b *bench) modes(ctx context.Context) error {
	var origins []*path
	for range 3 {
		o, err := b.origin("versitygw")
		if err != nil {
			return err
		}
		if err := fill(ctx, o, []int64{1 << 10, 64 << 10, 8 << 20}, 0); err != nil {
			return err
		}
		origins = append(origins, o)
	}
	one, err := b.mux("one backend", "failover", "replicated", origins[0])
	if err != nil {
		return err
	}
	paths := []*path{origins[0], one}
	for _, m := range []struct{ mode, keyspace string }{
		{"failover", "replicated"}, {"round-robin", "replicated"}, {"weighted", "replicated"}, {"sticky-by-key", "replicated"},
		{"shield", "replicated"}, {"mirror", "replicated"},
	} {
		p, err := b.mux(m.mode, m.mode, m.keyspace, origins...)
		if err != nil {
			return err
		}
		paths = append(paths, p)
	}
	union, err := b.rclone(origins...)
	if err != nil {
		return err
	}
	paths = append(paths, union)
	works := []work{
		{op: "GET", size: 64 << 10, conns: 16}, {op: "PUT", size: 64 << 10, conns: 16},
		{op: "GET", size: 8 << 20, conns: 16}, {op: "PUT", size: 8 << 20, conns: 16},
	}
	return b.measure(ctx, "Each mode over three stores", "All stores and all paths share the same cores: a fan-out to three costs the stores three times.", paths, works)
}

// openLoop is the latency that a path adds at a steady rate.
func (b *bench) openLoop(ctx context.Context) error {
	origin, err := b.origin("light")
	if err != nil {
		return err
	}
	paths, err := b.peers(origin)
	if err != nil {
		return err
	}
	works := []work{{op: "GET", size: 64 << 10, conns: 64, rate: 500}, {op: "GET", size: 1 << 10, conns: 64, rate: 500}}
	return b.measure(ctx, "At a steady rate", "500 requests a second begin whatever became of those before; what a path adds is its p50 less that of direct.", paths, works)
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// behind makes paths to stores through links whose weather changes.
func (b *bench) behind(ctx context.Context, kind string, n int) ([]*path, []*flaky, error) {
	var paths []*path
	var links []*flaky
	for range n {
		o, err := b.origin(kind)
		if err != nil {
			return nil, nil, err
		}
		link, err := newFlaky(ctx, o.address)
		if err != nil {
			return nil, nil, err
		}
		paths = append(paths, &path{name: "direct", address: link.address(), host: link.address(), processes: o.processes})
		links = append(links, link)
	}
	return paths, links, nil
}

// deaths counts failed and delayed requests around the death of a backend and
// its return.
func (b *bench) deaths(ctx context.Context) error {
	const bin = 100 * time.Millisecond
	g := graph{name: "death", title: "Requests per 100 ms that failed or took over 100 ms, as a backend dies at 2 s and returns at 6 s",
		x: "seconds", y: "requests", text: "Two stores in mode failover, 200 GET a second of 64 KiB, open loop; the first store dies in three ways. Timeout of a backend: 2 s."}
	for _, way := range []struct {
		name string
		w    weather
	}{{"killed", weather{refuse: true}}, {"hung", weather{hang: true}}, {"reset", weather{reset: true}}} {
		ctx, cancel := context.WithCancel(ctx)
		stores, links, err := b.behind(ctx, "light", 2)
		if err != nil {
			cancel()
			return err
		}
		mux, err := b.mux("death-"+way.name, "failover", "replicated", stores...)
		if err != nil {
			cancel()
			return err
		}
		start := time.Now()
		time.AfterFunc(2*time.Second, func() { links[0].set(way.w) })
		time.AfterFunc(6*time.Second, func() { links[0].set(weather{}) })
		var mu sync.Mutex
		failed, delayed := map[int]float64{}, map[int]float64{}
		all, bad, late := 0, 0, 0
		_, err = load(ctx, work{op: "GET", size: 64 << 10, conns: 200, rate: 200}, mux.address, mux.host, 10*time.Second,
			func(began time.Time, took time.Duration, ok bool) {
				mu.Lock()
				defer mu.Unlock()
				at := int(began.Sub(start) / bin)
				all++
				switch {
				case !ok:
					failed[at]++
					bad++
				case took > 100*time.Millisecond:
					delayed[at]++
					if took > 2*time.Second+100*time.Millisecond {
						late++
					}
				}
			})
		cancel()
		if err != nil {
			return err
		}
		var f, d series
		f.name, d.name = way.name+", failed", way.name+", delayed"
		for i := range 100 {
			f.add(float64(i)/10, failed[i])
			d.add(float64(i)/10, delayed[i])
		}
		g.series = append(g.series, f, d)
		g.figures = append(g.figures, fmt.Sprintf("%s: of %d requests %d failed, %d took longer than one timeout (2 s)", way.name, all, bad, late))
		what := "death of a backend, " + way.name + ": "
		b.report.targets = append(b.report.targets,
			target{what: what + "requests delayed beyond one timeout, %", want: 0.1, atMost: true, got: 100 * float64(late) / float64(all)},
			target{what: what + "GETs failed", want: 0, atMost: true, got: float64(bad)})
	}
	b.report.graphs = append(b.report.graphs, g)
	return nil
}

// heldFanOut compares a fan-out to three members with one, each member held to
// 20 MiB/s.
func (b *bench) heldFanOut(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stores, links, err := b.behind(ctx, "light", 3)
	if err != nil {
		return err
	}
	for _, link := range links {
		link.set(weather{rate: 20 << 20})
	}
	one, err := b.mux("one member", "failover", "replicated", stores[0])
	if err != nil {
		return err
	}
	three, err := b.mux("mirror of three", "mirror", "replicated", stores...)
	if err != nil {
		return err
	}
	return b.measure(ctx, "Fan-out, each member held to 20 MiB/s", "So that the members do not share the cores.", []*path{one, three},
		[]work{{op: "PUT", size: 8 << 20, conns: 1}, {op: "PUT", size: 1 << 20, conns: 1}})
}

// fanOutCost is the throughput of writes to ever more members.
func (b *bench) fanOutCost(ctx context.Context) error {
	g := graph{name: "fanout", title: "Throughput of a mirror's PUTs, one member = 1", x: "members", y: "ratio",
		text: "Light stores; all of them and the proxy share the machine's cores."}
	for _, size := range []int64{64 << 10, 8 << 20} {
		s := series{name: sizeName(size)}
		base := 0.0
		for _, n := range []int{1, 2, 3, 5} {
			var stores []*path
			for range n {
				o, err := b.origin("light")
				if err != nil {
					return err
				}
				stores = append(stores, o)
			}
			mux, err := b.mux(fmt.Sprintf("fan-%d-%d", size, n), "mirror", "replicated", stores...)
			if err != nil {
				return err
			}
			var rates []float64
			for range b.rounds {
				one, err := b.sample(ctx, work{op: "PUT", size: size, conns: 8}, mux)
				if err != nil {
					return err
				}
				rates = append(rates, one.perSecond())
			}
			rate := median(rates)
			if n == 1 {
				base = rate
			}
			s.add(float64(n), rate/base)
			b.stopAll()
		}
		g.series = append(g.series, s)
	}
	b.report.graphs = append(b.report.graphs, g)
	return nil
}

// slowMirror is the latency of a mirror one of whose members slows down.
func (b *bench) slowMirror(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := graph{name: "slow", title: "p99 as one mirror of three slows down", x: "delay of every 32 KiB to one member (ms); the last is a stall", y: "ms", logX: true,
		text: "GET of 64 KiB, PUT of 1 MiB, 4 connections. A member under 64 KiB/s is dropped from a write, and is sent one on trial now and then."}
	stores, links, err := b.behind(ctx, "light", 3)
	if err != nil {
		return err
	}
	mux, err := b.mux("slow", "mirror", "replicated", stores...)
	if err != nil {
		return err
	}
	p99 := func(w work, now weather) (float64, error) {
		links[2].set(now)
		defer links[2].set(weather{})
		ignore := func(time.Time, time.Duration, bool) {}
		// What comes before the member is dropped the first time is not counted.
		if _, err := load(ctx, w, mux.address, mux.host, 4*time.Second, ignore); err != nil {
			return 0, err
		}
		s, err := load(ctx, w, mux.address, mux.host, 3*b.during, ignore)
		if err != nil {
			return 0, err
		}
		return float64(s.latency.quantile(0.99).Microseconds()) / 1e3, nil
	}
	for _, w := range []work{{op: "GET", size: 64 << 10, conns: 4}, {op: "PUT", size: 1 << 20, conns: 4}} {
		healthy, err := p99(w, weather{})
		if err != nil {
			return err
		}
		s := series{name: w.op}
		for _, ms := range []int{1, 10, 100, 1000, 10000} {
			now := weather{delay: time.Duration(ms) * time.Millisecond}
			if ms == 10000 {
				now = weather{hang: true}
			}
			got, err := p99(w, now)
			if err != nil {
				return err
			}
			s.add(float64(ms), got)
		}
		slow, err := p99(w, weather{rate: 1 << 10})
		if err != nil {
			return err
		}
		g.series = append(g.series, s)
		g.figures = append(g.figures, fmt.Sprintf("%s: p99 %.1f ms with all members well", w, healthy), fmt.Sprintf("%s: p99 %.1f ms with one at 1 KiB/s, once it was dropped", w, slow))
		b.report.targets = append(b.report.targets, target{what: g.title + ": " + w.String() + ", one member at 1 KiB/s to none", want: 1.1, atMost: true, got: slow / healthy})
	}
	b.report.graphs = append(b.report.graphs, g)
	return nil
}

// memory is what the proxy needs while large objects are written to three stores
// that verify and discard.
func (b *bench) memory(ctx context.Context) error {
	size, steps := int64(1<<30), []int{1, 4, 16, 64}
	if b.short {
		size, steps = 256<<20, []int{1, 4, 16}
	}
	g := graph{name: "memory", title: "Peak resident memory of the proxy during concurrent PUTs of " + sizeName(size) + " to three members", x: "concurrent PUTs", y: "MiB",
		text: "The stores verify and discard. Default spool."}
	var stores []*path
	for range 3 {
		o, err := b.origin("verify")
		if err != nil {
			return err
		}
		stores = append(stores, o)
	}
	mux, err := b.mux("memory", "mirror", "replicated", stores...)
	if err != nil {
		return err
	}
	s := series{name: "storagemux"}
	for _, n := range steps {
		resetPeak(mux.processes)
		if err := putMany(ctx, mux, n, size); err != nil {
			return err
		}
		peak, err := peakMemory(mux.processes)
		if err != nil {
			return err
		}
		s.add(float64(n), float64(peak)/(1<<20))
		if size == 1<<30 && n == 64 {
			b.report.targets = append(b.report.targets, target{what: "64 PUTs of 1 GiB at a time to three members: resident MiB", want: 256, atMost: true, got: float64(peak >> 20)})
		}
	}
	g.series = append(g.series, s)
	b.report.graphs = append(b.report.graphs, g)
	return nil
}

// putMany sends n objects at once, without holding any of them.
func putMany(ctx context.Context, p *path, n int, size int64) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			head, err := signedLarge(p.host, fmt.Sprintf("/%s/large-%d", bucket, i), size)
			if err == nil {
				err = putLarge(ctx, p.address, head, size)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// lists is the latency of one page of a merged list.
func (b *bench) lists(ctx context.Context) error {
	g := graph{name: "lists", title: "Latency of a page of 1,000 keys, merged", x: "members", y: "p50, ms", text: "Keyspace spread over versitygw; keys on every member."}
	for _, keys := range []int{1000, 5000} {
		s := series{name: fmt.Sprintf("%d keys a member", keys)}
		var stores []*path
		for n := 1; n <= 5; n++ {
			o, err := b.origin("versitygw")
			if err != nil {
				return err
			}
			if err := fill(ctx, o, nil, keys); err != nil {
				return err
			}
			stores = append(stores, o)
			if n == 4 {
				continue
			}
			mux, err := b.mux(fmt.Sprintf("lists-%d-%d", keys, n), "failover", "spread", stores...)
			if err != nil {
				return err
			}
			one, err := b.sample(ctx, work{op: "LIST", conns: 1}, mux)
			if err != nil {
				return err
			}
			s.add(float64(n), float64(one.latency.quantile(0.5).Microseconds())/1e3)
		}
		g.series = append(g.series, s)
		b.stopAll()
	}
	b.report.graphs = append(b.report.graphs, g)
	return nil
}

// drains is how long a member that is taken from the list is still used.
func (b *bench) drains(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := graph{name: "drain", title: "Time from the change of the manifest to the end of the drain", x: "requests a second", y: "ms",
		text: "Two stores in mode failover, GET of 1 MiB, each store held to 200 MiB/s; the first is taken out of the list."}
	s := series{name: "drain"}
	for _, rate := range []int{1, 10, 50, 100} {
		stores, links, err := b.behind(ctx, "light", 2)
		if err != nil {
			return err
		}
		for _, link := range links {
			link.set(weather{delay: time.Millisecond})
		}
		name := fmt.Sprintf("drain-%d", rate)
		mux, err := b.mux(name, "failover", "replicated", stores...)
		if err != nil {
			return err
		}
		manifest := filepath.Join(b.dir, "mux-"+name, "manifests.yaml")
		text, err := os.ReadFile(manifest)
		if err != nil {
			return err
		}
		var took time.Duration
		var drainErr error
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(2 * time.Second)
			began := time.Now()
			without := strings.Replace(string(text), "backends: [{name: store-0}, {name: store-1}]", "backends: [{name: store-1}]", 1)
			if drainErr = os.WriteFile(manifest, []byte(without), 0o600); drainErr != nil {
				return
			}
			took, drainErr = drained(ctx, mux.admin, "store-0", began)
		})
		bad := 0
		var mu sync.Mutex
		_, err = load(ctx, work{op: "GET", size: 1 << 20, conns: 64, rate: rate}, mux.address, mux.host, 6*time.Second, func(_ time.Time, _ time.Duration, ok bool) {
			mu.Lock()
			defer mu.Unlock()
			if !ok {
				bad++
			}
		})
		wg.Wait()
		if err != nil || drainErr != nil {
			return fmt.Errorf("%w; %w", err, drainErr)
		}
		s.add(float64(rate), float64(took.Milliseconds()))
		g.figures = append(g.figures, fmt.Sprintf("%d requests a second: %d ms, %d failed", rate, took.Milliseconds(), bad))
		b.stopAll()
	}
	g.series = append(g.series, s)
	b.report.graphs = append(b.report.graphs, g)
	return nil
}

// drained waits until the report does not name the member any more.
func drained(ctx context.Context, admin, member string, since time.Time) (time.Duration, error) {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		response, err := http.Get("http://" + admin + "/v1/report")
		if err != nil {
			return 0, err
		}
		var report struct {
			Members []struct {
				Path string `json:"path"`
			} `json:"members"`
		}
		err = json.NewDecoder(response.Body).Decode(&report)
		_ = response.Body.Close()
		if err != nil {
			return 0, err
		}
		there := false
		for _, m := range report.Members {
			there = there || m.Path == member
		}
		if !there {
			return time.Since(since), nil
		}
	}
	return 0, fmt.Errorf("the report still names %s", member)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return math.NaN()
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

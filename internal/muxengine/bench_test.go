package muxengine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/collector"
	"github.com/suaveplan/storagemux/internal/storage"
)

// noop answers every read at once with the same object.
type noop struct{ storage.Storage }

// noopObject is shared: the engine changes nothing that a store returns.
var noopObject = &storage.Object{Info: storage.Info{Key: "k", Size: 4, ETag: "0123"}, Length: 4, Body: noopBody{}}

func (noop) Capabilities() storage.Capabilities { return storage.AllCapabilities() }

func (noop) GetStream(context.Context, string, storage.GetOptions) (*storage.Object, error) {
	return noopObject, nil
}

type noopBody struct{}

func (noopBody) Read(p []byte) (int, error) { return copy(p, "data"), io.EOF }
func (noopBody) Close() error               { return nil }

func noops(n int) []Member {
	var members []Member
	for i := range n {
		w := 1 + i%7
		members = append(members, Member{Name: fmt.Sprint("member", i), Storage: noop{}, Weight: &w})
	}
	return members
}

func newBench(b *testing.B, cfg Config) *Mux {
	b.Helper()
	m, err := New(cfg, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(m.Close)
	return m
}

// BenchmarkChoose is the choice of the first member.
func BenchmarkChoose(b *testing.B) {
	for _, tc := range []struct {
		name string
		cfg  Config
	}{
		{"failover", Config{Mode: ModeFailover}},
		{"round-robin", Config{Mode: ModeRoundRobin}},
		{"weighted", Config{Mode: ModeWeighted}},
		{"sticky-fnv1a", Config{Mode: ModeStickyByKey}},
		{"sticky-rendezvous", Config{Mode: ModeStickyByKey, StickyHash: StickyRendezvous}},
		{"shield", Config{Mode: ModeShield}},
		{"mirror", Config{Mode: ModeMirror}},
	} {
		for _, n := range []int{2, 10, 100} {
			b.Run(fmt.Sprintf("mode=%s/members=%d", tc.name, n), func(b *testing.B) {
				tc.cfg.Members = noops(n)
				m := newBench(b, tc.cfg)
				c := &call{req: request{op: opGet, key: "photos/2026/11/30/img_0042.jpg"}}
				b.ReportAllocs()
				for b.Loop() {
					c.pick = pick{}
					c.node = m.node.Load()
					c.prepare()
					if _, ok := c.pick.choose(); !ok {
						b.Fatal("nobody was chosen")
					}
				}
			})
		}
	}
}

func benchGet(b *testing.B, s storage.Storage) {
	ctx := context.Background()
	buf := make([]byte, 16)
	b.ReportAllocs()
	for b.Loop() {
		obj, err := s.GetStream(ctx, "k", storage.GetOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := obj.Body.Read(buf); err != io.EOF {
			b.Fatal(err)
		}
		_ = obj.Body.Close()
	}
}

// BenchmarkGet is a whole GET over stores that do nothing, collected as in a
// proxy; store=bare is what such a store costs by itself.
func BenchmarkGet(b *testing.B) {
	collector.Ease()
	b.Run("store=bare", func(b *testing.B) { benchGet(b, noop{}) })
	for _, mode := range []Mode{ModeFailover, ModeRoundRobin, ModeWeighted, ModeStickyByKey} {
		b.Run("mode="+string(mode), func(b *testing.B) {
			benchGet(b, newBench(b, Config{Mode: mode, Members: noops(3)}))
		})
	}
	for levels := 1; levels <= 3; levels++ {
		cfg := Config{Mode: ModeFailover, Members: noops(2)}
		for i := range levels - 1 {
			inner := cfg
			cfg = Config{Mode: ModeFailover, Members: []Member{{Name: fmt.Sprint("level", i), Mux: &inner}}}
		}
		b.Run(fmt.Sprintf("levels=%d", levels), func(b *testing.B) { benchGet(b, newBench(b, cfg)) })
	}
	for _, n := range []int{1, 2, 3, 4} {
		b.Run(fmt.Sprintf("raced=%d", n), func(b *testing.B) {
			benchGet(b, newBench(b, Config{Mode: ModeMirror, Members: noops(n)}))
		})
	}
}

// BenchmarkReload shows what a reload of 100 members costs the requests that run
// beside it: how long GETs take while a reload follows every two milliseconds,
// and with reload=none how long they take here anyhow. An iteration is one
// reload and the pause after it.
func BenchmarkReload(b *testing.B) {
	for _, name := range []string{"none", "all"} {
		b.Run("reload="+name, func(b *testing.B) {
			cfg := Config{Mode: ModeRoundRobin, Members: noops(100)}
			m := newBench(b, cfg)
			ctx, cancel := context.WithCancel(context.Background())
			var took []time.Duration
			failed := 0
			done := make(chan struct{})
			go func() {
				defer close(done)
				for ctx.Err() == nil {
					began := time.Now()
					obj, err := m.GetStream(context.Background(), "k", storage.GetOptions{})
					if err != nil {
						failed++
						continue
					}
					_ = obj.Body.Close()
					took = append(took, time.Since(began))
					time.Sleep(50 * time.Microsecond)
				}
			}()
			var reloads time.Duration
			for b.Loop() {
				if name == "all" {
					began := time.Now()
					if err := m.Apply(cfg); err != nil {
						b.Fatal(err)
					}
					reloads += time.Since(began)
				}
				time.Sleep(2 * time.Millisecond)
			}
			cancel()
			<-done
			slices.Sort(took)
			b.ReportMetric(float64(reloads.Microseconds())/float64(b.N), "µs/reload")
			b.ReportMetric(float64(took[len(took)*999/1000].Nanoseconds())/1e3, "µs-p99.9-get")
			b.ReportMetric(float64(took[len(took)-1].Nanoseconds())/1e3, "µs-longest-get")
			b.ReportMetric(float64(failed), "failed-gets")
		})
	}
}

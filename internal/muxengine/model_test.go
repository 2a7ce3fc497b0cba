package muxengine

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// model drives a random tree of muxes from many goroutines through faults,
// reloads and drains, and checks what must hold whatever happens.
type model struct {
	t     *testing.T
	rng   *rand.Rand
	mux   *Mux
	names int
	// leaves by name; a name is never used again.
	leaves map[string]*modelStore
	// byName holds the same for the sink of events.
	byName sync.Map
	calls  atomic.Uint64
	drains sync.WaitGroup
}

// modelStore is a leaf that does what its fault says.
type modelStore struct {
	*fake
	fault   atomic.Int64
	running atomic.Int64
}

// attempts is the number of calls but for probes.
func (s *modelStore) attempts() int64 {
	return int64(s.count("get", "stat", "set", "delete", "list") - s.count("probe"))
}

// maxModelMembers is the most members that a mux of the model has.
const maxModelMembers = 6

const (
	faultNone = iota
	faultUnavailable
	faultHang
	faultDenied
	faultNoSpace
	faults
)

func (m *model) leaf(weighted bool) Member {
	m.names++
	s := &modelStore{fake: newFake(fmt.Sprint("leaf", m.names))}
	s.put("there", "hello", nil)
	s.before = s.behave
	m.leaves[s.name] = s
	m.byName.Store(s.name, s)
	member := Member{Name: s.name, ID: s.name, Storage: s, Timeout: time.Second, DrainTimeout: 3 * time.Second}
	if m.rng.IntN(4) == 0 {
		member.MaxInFlight = 4
	}
	if m.rng.IntN(4) == 0 {
		member.HealthCheck = HealthCheck{Interval: 2 * time.Second, Timeout: time.Second}
	}
	if weighted {
		member.Weight = weightOf(1 + m.rng.IntN(5))
	}
	return member
}

func (s *modelStore) behave(ctx context.Context, op, key string) error {
	if key != storage.ProbeKey {
		s.running.Add(1)
		defer s.running.Add(-1)
	}
	switch s.fault.Load() {
	case faultUnavailable:
		return unavailable()
	case faultHang:
		<-ctx.Done()
		return storage.Interrupted(ctx, op, "hanging")
	case faultDenied:
		return storage.Errorf(storage.CodeAccessDenied, op, "no")
	case faultNoSpace:
		if op == "set" {
			return storage.Errorf(storage.CodeNoSpace, op, "full")
		}
	}
	return nil
}

// tree returns a random mux at most depth deep.
func (m *model) tree(name string, depth int) Config {
	all := []Mode{ModeFailover, ModeRoundRobin, ModeWeighted, ModeStickyByKey, ModeShield, ModeMirror}
	cfg := Config{Name: name, Mode: all[m.rng.IntN(len(all))]}
	if modes[cfg.Mode].spread && m.rng.IntN(3) == 0 {
		cfg.Keyspace = KeyspaceSpread
	}
	if m.rng.IntN(3) == 0 {
		cfg.Health.WhenAllDown = WhenAllDownTry
	}
	if cfg.Mode == ModeStickyByKey && m.rng.IntN(2) == 0 {
		cfg.StickyHash = StickyRendezvous
	}
	for range 2 + m.rng.IntN(3) {
		cfg.Members = append(cfg.Members, m.member(depth, cfg.Mode == ModeWeighted))
	}
	return cfg
}

func (m *model) member(depth int, weighted bool) Member {
	if depth == 1 || m.rng.IntN(3) > 0 {
		return m.leaf(weighted)
	}
	m.names++
	name := fmt.Sprint("mux", m.names)
	inner := m.tree(name, depth-1)
	member := Member{Name: name, ID: name, Mux: &inner, DrainTimeout: 3 * time.Second}
	if weighted {
		member.Weight = weightOf(1 + m.rng.IntN(5))
	}
	return member
}

// request issues one random request.
func (m *model) request(r int) {
	m.calls.Add(1)
	ctx := context.Background()
	key := []string{"there", "missing", "written"}[r/8%3]
	var err error
	switch r % 8 {
	case 0, 1, 2:
		_, _, err = storage.Get(ctx, m.mux, key)
	case 3:
		_, err = storage.Has(ctx, m.mux, key)
	case 4:
		_, err = storage.Set(ctx, m.mux, "written", []byte("x"), storage.SetOptions{})
	case 5:
		err = m.mux.Delete(ctx, "written")
	case 6:
		_, err = m.mux.List(ctx, storage.ListOptions{})
	case 7:
		short, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		_, _, err = storage.Get(short, m.mux, key)
		cancel()
	}
	var e *storage.Error
	switch {
	case err == nil:
	case !errors.As(err, &e):
		m.t.Errorf("an error without a code: %v", err)
	case e.AttemptCount > 2*maxModelMembers:
		m.t.Errorf("%d attempts for one call: %v", e.AttemptCount, err)
	}
}

// burst makes n random requests at once and returns a wait for their end.
func (m *model) burst(n int) (wait func()) {
	var wg sync.WaitGroup
	for range n {
		r := m.rng.IntN(1 << 20)
		wg.Go(func() { m.request(r) })
	}
	return wg.Wait
}

// change makes one random change of the topology.
func (m *model) change() {
	cfg := m.mux.config()
	weighted := cfg.Mode == ModeWeighted
	i := 0
	if len(cfg.Members) > 0 {
		i = m.rng.IntN(len(cfg.Members))
	}
	switch m.rng.IntN(6) {
	case 0:
		if len(cfg.Members) < maxModelMembers {
			_ = m.mux.AddBackend(m.member(2, weighted))
		}
	case 1:
		if len(cfg.Members) > 2 {
			_ = m.mux.RemoveBackend(cfg.Members[i].Name)
		}
	case 2:
		if len(cfg.Members) > 2 {
			name := cfg.Members[i].Name
			m.drains.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				defer cancel()
				_ = m.mux.Drain(ctx, name)
			})
		}
	case 3:
		if len(cfg.Members) > 0 {
			cfg.Members[i].Drain = Drain{Phase: DrainPhase(m.rng.IntN(3)), Deadline: time.Now().Add(2 * time.Second)}
			_ = m.mux.Apply(cfg)
		}
	case 4:
		if len(cfg.Members) > 0 && weighted {
			_ = m.mux.SetWeight(cfg.Members[i].Name, 1+m.rng.IntN(9))
		}
	case 5:
		_ = m.mux.Apply(cfg)
	}
}

// watched is what the model knows of a leaf before a burst.
type watched struct {
	member   *member
	attempts int64
	shut     bool
}

// watch notes the leaves that no request may reach: those granted to go, and
// those that stay down for the whole of a burst while a sibling is up.
func (m *model) watch(n *node, within time.Duration, shut bool, into map[string]*watched) {
	for _, b := range n.members {
		closed := shut || b.granted()
		if b.nested != nil {
			m.watch(b.nested, within, closed, into)
			continue
		}
		until := b.state.health.until.Load()
		down := b.state.health.down.Load() && until > m.mux.now()+int64(within)
		others := len(n.reads.index) > 0 && len(n.writes.index) > 0
		into[b.name] = &watched{
			member: b, attempts: m.leaves[b.name].attempts(),
			shut: closed || down && others,
		}
	}
}

// quietBurst checks that a burst which nothing disturbs leaves alone whom it must.
func (m *model) quietBurst() {
	const limit = 200 * time.Millisecond
	before := map[string]*watched{}
	m.watch(m.mux.node.Load(), limit, false, before)
	began := time.Now()
	down := m.downLeaves()
	m.burst(8)()
	if time.Since(began) > limit || m.downLeaves() != down {
		return // somebody hung, or changed state: the notes are void
	}
	for name, w := range before {
		if got := m.leaves[name].attempts() - w.attempts; w.shut && got > 0 {
			m.t.Errorf("%s was chosen %d times though it is down or draining", name, got)
		}
	}
}

func (m *model) downLeaves() string {
	var list []string
	m.mux.node.Load().walkMembers(func(b *member) {
		list = append(list, fmt.Sprint(b.name, b.state.health.epoch.Load(), b.state.space.epoch.Load()))
	})
	return strings.Join(list, ",")
}

// checkSums checks that attempts and calls add up at every level.
func (m *model) checkSums(s Stats) {
	for _, b := range s.Members {
		outcomes := b.Hits + b.Misses + b.Errors + b.Aborts
		if b.Timeouts > b.Errors {
			m.t.Errorf("%s: %d timeouts of %d errors", b.Path, b.Timeouts, b.Errors)
		}
		if b.InFlight != 0 {
			m.t.Errorf("%s: %d in flight at rest", b.Path, b.InFlight)
		}
		if b.Nested != nil {
			if outcomes != b.Nested.TotalCalls {
				m.t.Errorf("%s: %d attempts, but the mux counts %d calls", b.Path, outcomes, b.Nested.TotalCalls)
			}
			m.checkSums(*b.Nested)
			continue
		}
		if got := m.leaves[b.Name].attempts(); uint64(got) != outcomes {
			m.t.Errorf("%s: %d attempts, but the store saw %d", b.Path, outcomes, got)
		}
	}
}

func (m *model) run(steps int) {
	for range steps {
		for _, s := range m.leaves {
			if m.rng.IntN(5) == 0 {
				s.fault.Store(int64(m.rng.IntN(faults)))
			} else if m.rng.IntN(3) == 0 {
				s.fault.Store(faultNone)
			}
		}
		if m.rng.IntN(2) == 0 {
			wait := m.burst(12)
			time.Sleep(time.Duration(m.rng.IntN(300)) * time.Millisecond)
			m.change()
			wait()
		}
		time.Sleep(time.Duration(m.rng.IntN(3000)) * time.Millisecond)
		synctest.Wait()
		m.quietBurst()
	}
	m.settle()
}

// settle heals everything and checks that all comes to rest, and that it serves.
func (m *model) settle() {
	for _, s := range m.leaves {
		s.fault.Store(faultNone)
	}
	time.Sleep(2 * time.Minute)
	m.burst(4)()
	m.drains.Wait()
	synctest.Wait()
	s := m.mux.Stats()
	if len(s.Leaving) != 0 {
		m.t.Errorf("%d members have not left", len(s.Leaving))
	}
	if s.TotalCalls != m.calls.Load() {
		m.t.Errorf("%d calls were made and %d counted", m.calls.Load(), s.TotalCalls)
	}
	m.checkSums(s)
	for name, leaf := range m.leaves {
		if leaf.openBodies() != 0 || leaf.running.Load() != 0 {
			m.t.Errorf("%s: %d bodies open, %d calls running", name, leaf.openBodies(), leaf.running.Load())
		}
	}
	m.mux.Close()
}

var modelSeeds = flag.Uint64("model.seeds", 40, "how many random histories the model test tries")

func TestModelHoldsForRandomTreesFaultsReloadsAndDrains(t *testing.T) {
	for seed := range *modelSeeds {
		synctest.Test(t, func(t *testing.T) {
			m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 1)), leaves: map[string]*modelStore{}}
			cfg := m.tree("root", 3)
			mux, err := New(cfg, Options{Events: func(e Event) {
				leaf, ok := m.byName.Load(e.Name)
				if !ok || e.Topic != TopicDrainCompleted {
					return
				}
				if n := leaf.(*modelStore).running.Load(); n != 0 {
					t.Errorf("the drain of %s ended with %d calls running", e.Name, n)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			m.mux = mux
			m.run(40)
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
		if t.Failed() {
			return
		}
	}
}

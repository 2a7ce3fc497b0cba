package fleet

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// Options are the settings of a Fleet. The zero value of each but Changed and
// Happened has a default.
type Options struct {
	// Port is the proxies' admin port, 8081 by default.
	Port string
	// Wait is how long a proxy may hold a poll open, 15 s by default.
	Wait time.Duration
	// Timeout bounds a connection attempt, and what a poll may take beyond
	// Wait; 3 s by default.
	Timeout time.Duration
	// Tries is how many polls in a row must fail before a proxy counts as
	// silent, 3 by default.
	Tries int
	// Grace is how long the last report of a silent proxy still counts,
	// 30 s by default.
	Grace time.Duration
	// MinBackoff and MaxBackoff bound the pause between failed polls, 200 ms
	// and 5 s by default.
	MinBackoff, MaxBackoff time.Duration
	// Dial opens connections; nil dials the pod's address.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Changed is called when the state or only the figures of a proxy
	// changed. It must not block.
	Changed func(Change)
	// Happened is called with the events of a proxy, oldest first, each
	// once. It must not block.
	Happened func(Target, *muxconfig.Report, []muxconfig.Event)
	Log      logr.Logger
}

func (o Options) withDefaults() Options {
	setDefault(&o.Port, "8081")
	setDefault(&o.Wait, 15*time.Second)
	setDefault(&o.Timeout, 3*time.Second)
	setDefault(&o.Tries, 3)
	setDefault(&o.Grace, 30*time.Second)
	setDefault(&o.MinBackoff, 200*time.Millisecond)
	setDefault(&o.MaxBackoff, 5*time.Second)
	if o.Changed == nil {
		o.Changed = func(Change) {}
	}
	if o.Happened == nil {
		o.Happened = func(Target, *muxconfig.Report, []muxconfig.Event) {}
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Access is what opens the admin port of a mux's proxies. Proxies that have not
// read the newest document yet still use the values of the one before, so both
// lists may have several entries, newest first.
type Access struct {
	Tokens []muxconfig.Secret
	// Certs are PEM certificates; a proxy must show one of them.
	Certs []string
}

// Target is one proxy pod.
type Target struct {
	Mux types.NamespacedName
	// MuxUID is the UID of the mux.
	MuxUID string
	// Pod and UID identify the pod, IP is its address.
	Pod, UID, IP string
}

// Change names the objects whose status a report may have changed.
type Change struct {
	Mux types.NamespacedName
	// Backends and Nested are the names of the backends and of the muxes
	// below Mux of which the report says something else than the one before
	// it, or all that either mentions where the proxy, or what is known of
	// it, is new.
	Backends, Nested []string
	// FiguresOnly: no state, acknowledgement, rejection or drain moved.
	FiguresOnly bool
}

// Fleet holds the reports of all proxies.
type Fleet struct {
	options Options

	mu      sync.Mutex
	muxes   map[types.NamespacedName]*group
	holders map[string]map[*poller]bool // by the UID that a report mentions
	started context.Context             // nil until Start
	pollers sync.WaitGroup
}

// group is the proxies of one mux.
type group struct {
	access Access
	pods   map[string]*poller // by pod UID
}

// New returns a Fleet that polls once Start is called.
func New(options Options) *Fleet {
	return &Fleet{
		options: options.withDefaults(),
		muxes:   map[types.NamespacedName]*group{}, holders: map[string]map[*poller]bool{},
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Fleet) NeedLeaderElection() bool { return true }

// Start polls until ctx ends, and returns when every poll has ended.
func (f *Fleet) Start(ctx context.Context) error {
	f.mu.Lock()
	f.started = ctx
	for _, g := range f.muxes {
		for _, p := range g.pods {
			f.run(p)
		}
	}
	f.mu.Unlock()
	<-ctx.Done()
	f.mu.Lock()
	f.muxes = map[types.NamespacedName]*group{}
	f.mu.Unlock()
	f.pollers.Wait()
	return nil
}

// Sync makes targets the proxies of mux that are polled.
func (f *Fleet) Sync(mux types.NamespacedName, access Access, targets []Target) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.started != nil && f.started.Err() != nil {
		return
	}
	g := f.muxes[mux]
	if g == nil {
		g = &group{pods: map[string]*poller{}}
		f.muxes[mux] = g
	}
	g.access = access
	wanted := map[string]bool{}
	for _, t := range targets {
		wanted[t.UID] = true
		if p := g.pods[t.UID]; p != nil && p.target == t {
			continue
		} else if p != nil {
			f.drop(p)
		}
		p := newPoller(f, t)
		g.pods[t.UID] = p
		if f.started != nil {
			f.run(p)
		}
	}
	for uid, p := range g.pods {
		if !wanted[uid] {
			f.drop(p)
			delete(g.pods, uid)
		}
	}
	if len(g.pods) == 0 {
		delete(f.muxes, mux)
	}
}

// run is called with f.mu held.
func (f *Fleet) run(p *poller) {
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(f.started)
	f.pollers.Go(func() { p.run(ctx) })
}

// Observations returns what is known of the proxies of mux, by pod name.
func (f *Fleet) Observations(mux types.NamespacedName) map[string]Observation {
	f.mu.Lock()
	pollers := []*poller{}
	if g := f.muxes[mux]; g != nil {
		pollers = slices.AppendSeq(pollers, maps.Values(g.pods))
	}
	f.mu.Unlock()
	seen := make(map[string]Observation, len(pollers))
	for _, p := range pollers {
		seen[p.target.Pod] = p.observation()
	}
	return seen
}

// Holders returns the names of the muxes whose proxies, in their last report,
// have the resource with this UID.
func (f *Fleet) Holders(uid string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for p := range f.holders[uid] {
		names = append(names, p.target.Mux.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// holds notes that p's report mentions the resources with these UIDs, and no
// others.
func (f *Fleet) holds(p *poller, uids map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !p.ended {
		f.setHolds(p, uids)
	}
}

// setHolds is called with f.mu held.
func (f *Fleet) setHolds(p *poller, uids map[string]bool) {
	for uid := range p.held {
		if !uids[uid] {
			if delete(f.holders[uid], p); len(f.holders[uid]) == 0 {
				delete(f.holders, uid)
			}
		}
	}
	for uid := range uids {
		if f.holders[uid] == nil {
			f.holders[uid] = map[*poller]bool{}
		}
		f.holders[uid][p] = true
	}
	p.held = uids
}

// drop ends p. It is called with f.mu held.
func (f *Fleet) drop(p *poller) {
	p.ended = true
	f.setHolds(p, nil)
	if p.cancel != nil {
		p.cancel()
	}
}

func (f *Fleet) access(mux types.NamespacedName) Access {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.muxes[mux]; g != nil {
		return g.access
	}
	return Access{}
}

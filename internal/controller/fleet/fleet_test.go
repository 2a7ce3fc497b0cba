package fleet_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/suaveplan/storagemux/internal/controller/fleet"
	"github.com/suaveplan/storagemux/internal/controller/fleet/fleettest"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

var muxKey = types.NamespacedName{Namespace: "ns", Name: "assets"}

// rig is a fleet with one simulated proxy, in virtual time.
type rig struct {
	t       *testing.T
	network *fleettest.Network
	fleet   *fleet.Fleet
	doc     *muxconfig.Document

	mu      sync.Mutex
	changes []fleet.Change
	events  []string
}

// withRig runs test with the fleet started; everything must have ended after.
func withRig(t *testing.T, test func(*rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, network: &fleettest.Network{}, doc: document(t, 1)}
		r.fleet = fleet.New(fleet.Options{
			Dial: r.network.Dial, Grace: 30 * time.Second,
			Changed: func(c fleet.Change) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.changes = append(r.changes, c)
			},
			Happened: func(_ fleet.Target, _ *muxconfig.Report, events []muxconfig.Event) {
				r.mu.Lock()
				defer r.mu.Unlock()
				for _, e := range events {
					r.events = append(r.events, e.Message)
				}
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.fleet.Start(ctx) }()
		test(r)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func document(t *testing.T, revision int64) *muxconfig.Document {
	t.Helper()
	admin, err := muxconfig.NewAdmin(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &muxconfig.Document{
		Revision: revision, Hash: "h", Root: "assets", Admin: admin,
		Muxes:    []muxconfig.Mux{{Name: "assets", UID: "u", Members: []muxconfig.Member{{Name: "a", Backend: "store"}}}},
		Backends: []muxconfig.Backend{{Name: "store", UID: "uid"}},
	}
}

func access(docs ...*muxconfig.Document) fleet.Access {
	var a fleet.Access
	for _, doc := range docs {
		a.Tokens, a.Certs = append(a.Tokens, doc.Admin.Token), append(a.Certs, doc.Admin.TLS.Cert)
	}
	return a
}

func (r *rig) proxy() *fleettest.Proxy {
	r.t.Helper()
	p, err := fleettest.Start(r.network, "10.0.0.1", r.doc)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (r *rig) watch(a fleet.Access) {
	r.fleet.Sync(muxKey, a, []fleet.Target{{Mux: muxKey, MuxUID: "u", Pod: "p", UID: "pod-uid", IP: "10.0.0.1"}})
}

func (r *rig) seen() fleet.Observation { return r.fleet.Observations(muxKey)["p"] }

// taken returns the changes since the last call.
func (r *rig) taken() []fleet.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	changes := r.changes
	r.changes = nil
	return changes
}

func (r *rig) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.events
}

func (r *rig) expect(freshness fleet.Freshness) {
	r.t.Helper()
	if got := r.seen().Freshness; got != freshness {
		r.t.Fatalf("the proxy is %s, want %s (%s)", got, freshness, r.seen().Problem)
	}
}

func TestAChangeOfStateIsKnownAtOnceAndFiguresWithTheNextPoll(t *testing.T) {
	withRig(t, func(r *rig) {
		p := r.proxy()
		defer p.Stop()
		r.watch(access(r.doc))
		time.Sleep(time.Second)
		r.expect(fleet.Live)
		if c := r.taken(); len(c) != 1 || c[0].Mux != muxKey || c[0].FiguresOnly || len(c[0].Backends) != 1 || c[0].Backends[0] != "store" {
			t.Fatalf("changes %+v", c)
		}

		p.Edit(func(report *muxconfig.Report) { report.Members[0].State = muxconfig.StateDown })
		time.Sleep(200 * time.Millisecond)
		if c := r.taken(); len(c) != 1 || c[0].FiguresOnly || r.seen().Report.Members[0].State != muxconfig.StateDown {
			t.Fatalf("changes %+v, report %+v", c, r.seen().Report)
		}

		p.EditFigures(func(report *muxconfig.Report) { report.Members[0].Hits = 5 })
		time.Sleep(time.Second)
		if c := r.taken(); len(c) != 0 {
			t.Fatalf("figures must not wake anybody before the poll ends, got %+v", c)
		}
		time.Sleep(15 * time.Second)
		if c := r.taken(); len(c) != 1 || !c[0].FiguresOnly || r.seen().Report.Members[0].Hits != 5 {
			t.Fatalf("changes %+v", c)
		}

		time.Sleep(10 * time.Minute)
		if c := r.taken(); len(c) != 0 {
			t.Fatalf("nothing happened, got %+v", c)
		}
	})
}

func TestASilentProxyKeepsItsReportForTheGracePeriodAndIsThenLost(t *testing.T) {
	withRig(t, func(r *rig) {
		p := r.proxy()
		r.watch(access(r.doc))
		time.Sleep(time.Second)
		r.taken()
		p.Stop()
		time.Sleep(5 * time.Second)
		r.expect(fleet.Silent)
		if r.seen().Report == nil || len(r.taken()) != 1 {
			t.Fatal("a silent proxy must keep its report and be told of once")
		}
		time.Sleep(20 * time.Second)
		r.expect(fleet.Silent)
		time.Sleep(12 * time.Second)
		r.expect(fleet.Lost)
		if c := r.taken(); len(c) != 1 || c[0].FiguresOnly {
			t.Fatalf("changes %+v", c)
		}
		time.Sleep(10 * time.Minute)
		if c := r.taken(); len(c) != 0 {
			t.Fatalf("a lost proxy is told of once, got %+v", c)
		}

		p = r.proxy()
		defer p.Stop()
		time.Sleep(6 * time.Second)
		r.expect(fleet.Live)
		if c := r.taken(); len(c) != 1 {
			t.Fatalf("changes %+v", c)
		}
	})
}

func TestAProxyThatNeverAnsweredIsPendingThenSilentThenLost(t *testing.T) {
	withRig(t, func(r *rig) {
		r.watch(access(r.doc))
		r.expect(fleet.Pending)
		time.Sleep(3 * time.Second)
		r.expect(fleet.Silent)
		time.Sleep(40 * time.Second)
		r.expect(fleet.Lost)
		if r.seen().Report != nil {
			t.Fatal("nothing was ever reported")
		}
	})
}

func TestOnlyTheCertificateOfTheDocumentIsTrusted(t *testing.T) {
	withRig(t, func(r *rig) {
		p := r.proxy()
		defer p.Stop()
		other := document(t, 1)
		r.watch(fleet.Access{Tokens: []muxconfig.Secret{r.doc.Admin.Token}, Certs: []string{other.Admin.TLS.Cert}})
		time.Sleep(5 * time.Second)
		r.expect(fleet.Silent)
		if problem := r.seen().Problem; !strings.Contains(problem, "certificate") {
			t.Fatalf("problem %q must name the certificate", problem)
		}
	})
}

func TestAProxyThatHasNotReadTheNewestDocumentIsAskedWithTheOneBefore(t *testing.T) {
	withRig(t, func(r *rig) {
		p := r.proxy()
		defer p.Stop()
		newest := document(t, 2)
		r.watch(access(newest, r.doc))
		time.Sleep(time.Second)
		r.expect(fleet.Live)
		p.Apply(newest)
		time.Sleep(time.Second)
		r.expect(fleet.Live)
		if got := r.seen().Report.Applied.Revision; got != 2 {
			t.Fatalf("applied revision %d, want 2", got)
		}
	})
}

func TestEventsAreHandedOnOnceAndNotThoseFromBeforeThisLeader(t *testing.T) {
	withRig(t, func(r *rig) {
		p := r.proxy()
		defer p.Stop()
		p.Happen(muxconfig.Event{Message: "before"})
		time.Sleep(time.Second)
		r.watch(access(r.doc))
		time.Sleep(time.Second)
		p.Happen(muxconfig.Event{Message: "one"})
		time.Sleep(time.Minute)
		p.Happen(muxconfig.Event{Message: "two"})
		time.Sleep(time.Second)
		if got := strings.Join(r.heard(), " "); got != "one two" {
			t.Fatalf("events %q", got)
		}
	})
}

func TestAPodThatIsNotWatchedAnyMoreIsForgotten(t *testing.T) {
	withRig(t, func(r *rig) {
		p := r.proxy()
		defer p.Stop()
		r.watch(access(r.doc))
		time.Sleep(time.Second)
		if holders := r.fleet.Holders("uid"); len(holders) != 1 || holders[0] != "assets" {
			t.Fatalf("holders %v, want assets", holders)
		}
		r.fleet.Sync(muxKey, access(r.doc), nil)
		if seen := r.fleet.Observations(muxKey); len(seen) != 0 {
			t.Fatalf("still seen: %+v", seen)
		}
		if holders := r.fleet.Holders("uid"); len(holders) != 0 {
			t.Fatalf("still holders: %v", holders)
		}
	})
}

func TestAProxyThatChangesAllTheTimeIsAskedAtMostTenTimesASecond(t *testing.T) {
	withRig(t, func(r *rig) {
		p := r.proxy()
		defer p.Stop()
		r.watch(access(r.doc))
		time.Sleep(time.Second)
		r.taken()
		for range 1000 {
			p.Edit(func(*muxconfig.Report) {})
			time.Sleep(time.Millisecond)
		}
		if got := len(r.taken()); got < 5 || got > 11 {
			t.Fatalf("%d changes in a second, want about 10", got)
		}
	})
}

func TestOnlyWhatAReportSaysAnewIsNamed(t *testing.T) {
	doc := document(t, 1)
	doc.Muxes = []muxconfig.Mux{
		{Name: "assets", UID: "u", Members: []muxconfig.Member{{Name: "a", Backend: "store"}, {Name: "pair", Mux: "pair"}, {Name: "other", Mux: "other"}}},
		{Name: "pair", UID: "u2", Members: []muxconfig.Member{{Name: "b", Backend: "below"}, {Name: "c", Backend: "beside"}}},
		{Name: "other", UID: "u3", Members: []muxconfig.Member{{Name: "c", Backend: "beside"}}},
	}
	doc.Backends = []muxconfig.Backend{{Name: "store", UID: "1"}, {Name: "below", UID: "2"}, {Name: "beside", UID: "3"}}
	withRig(t, func(r *rig) {
		r.doc = doc
		p := r.proxy()
		defer p.Stop()
		r.watch(access(r.doc))
		time.Sleep(time.Second)
		expect := func(what, backends, nested string) {
			t.Helper()
			c := r.taken()
			if len(c) != 1 || strings.Join(c[0].Backends, " ") != backends || strings.Join(c[0].Nested, " ") != nested {
				t.Errorf("%s: changes %+v, want backends %q and muxes %q", what, c, backends, nested)
			}
		}
		expect("the first report", "below beside store", "other pair")
		edit := func(path string, change func(*muxconfig.MemberReport)) {
			p.Edit(func(report *muxconfig.Report) {
				for i := range report.Members {
					if report.Members[i].Path == path {
						change(&report.Members[i])
					}
				}
			})
			time.Sleep(200 * time.Millisecond)
		}
		edit("pair/b", func(m *muxconfig.MemberReport) { m.State = muxconfig.StateDown })
		expect("a member of a nested mux", "below", "pair")
		edit("other", func(m *muxconfig.MemberReport) { m.Totals = &muxconfig.Totals{Calls: 1} })
		expect("a nested mux", "", "other")
		p.Apply(doc)
		time.Sleep(200 * time.Millisecond)
		expect("an acknowledgement", "", "")
		p.Edit(func(report *muxconfig.Report) { report.Members = report.Members[:1] })
		time.Sleep(200 * time.Millisecond)
		expect("members that are gone", "below beside", "other pair")
	})
}

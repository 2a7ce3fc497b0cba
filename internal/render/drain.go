package render

import (
	"fmt"
	"slices"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// DrainState is how far a member is on its way out of one mux.
type DrainState string

// The states of a drain, in the order in which it passes them.
const (
	// DrainBlocked: the member may not go yet; Message says what must
	// happen first. In keyspace spread it takes no writes meanwhile, in
	// keyspace replicated it serves on.
	DrainBlocked DrainState = "Blocked"
	// DrainStopping: proxies are asked to stop choosing the member, or to
	// stop writing to it, and not all have said yet that they did.
	DrainStopping DrainState = "Stopping"
	// DrainReleased: the next document does not hold the member any more.
	DrainReleased DrainState = "Released"
)

// Drain is the step that one member takes with the next document.
type Drain struct {
	// Mux is the name of the mux that has the member, and Member its name
	// there. Backend or Nested, and UID, are the resource.
	Mux, Member          string
	Backend, Nested, UID string
	State                DrainState
	// Phase and Deadline go into the document; Phase is empty while the
	// member serves as before, and once it is released.
	Phase    muxconfig.DrainPhase
	Deadline *time.Time
	// Timeout is how long the drain may take once it is granted.
	Timeout time.Duration
	// Message says in one sentence what the drain waits for, Waiting names
	// the pods among that.
	Message string
	Waiting []string
	// Overdue are the pods that have not let go of the member although its
	// deadline is past: they are to be deleted.
	Overdue []string
}

// Proxy is what is known of one proxy pod.
type Proxy struct {
	// Pod is the pod's name.
	Pod string
	// Running: a container of the pod runs, so that it may hold requests. A
	// pod without one holds none, and reads the document when it starts.
	Running bool
	// Ready is the pod's condition.
	Ready bool
	// Report is the last one received, nil if there was none. Stale says
	// that it is older than the grace period.
	Report *muxconfig.Report
	Stale  bool
}

// Acknowledged reports whether p serves doc, or holds nothing at all.
func (p Proxy) Acknowledged(doc *muxconfig.Document) bool {
	if !p.Running {
		return true
	}
	return p.Report != nil && p.Report.Applied != nil &&
		p.Report.Applied.Hash == doc.Hash && p.Report.Applied.Revision >= doc.Revision
}

// member returns what p says of the member at path under doc, nil if it does
// not serve doc.
func (p Proxy) member(doc *muxconfig.Document, path string) *muxconfig.MemberReport {
	if p.Report == nil || !p.Acknowledged(doc) {
		return nil
	}
	for i := range p.Report.Members {
		if p.Report.Members[i].Path == path {
			return &p.Report.Members[i]
		}
	}
	return nil
}

// OverdueGrace is how long after a deadline a proxy may take to report that it
// cancelled what was left.
const OverdueGrace = 10 * time.Second

// leaving is a member of the stored document that is to go.
type leaving struct {
	member  muxconfig.Member
	uid     string
	timeout time.Duration // the backend's drainTimeout
	forced  bool          // annotation force-removal
	moved   bool          // annotation data-moved
	held    string        // why it must stay as it is, or ""
}

// drainRules holds what the decision about one leaving member depends on.
type drainRules struct {
	stored  *muxconfig.Document
	mux     *muxconfig.Mux // the mux of stored that holds the member
	places  []string       // the paths of mux in stored
	leaving []leaving
	staying []string // names of members of mux that go on serving
	proxies []Proxy
	now     time.Time
}

// decide returns the step of each leaving member. At most one member that is
// not forced is granted at a time.
func (r drainRules) decide() []Drain {
	drains := make([]Drain, 0, len(r.leaving))
	granted := r.granted()
	for _, l := range r.leaving {
		d := r.step(l, granted)
		if granted == "" && d.Phase == muxconfig.DrainGranted && !l.forced {
			granted = l.member.Name
		}
		drains = append(drains, d)
	}
	return drains
}

func (r drainRules) step(l leaving, granted string) Drain {
	d := Drain{Mux: r.mux.Name, Member: l.member.Name, Backend: l.member.Backend, Nested: l.member.Mux, UID: l.uid, Timeout: l.timeout}
	if l.member.Drain != nil && l.member.Drain.Phase == muxconfig.DrainGranted {
		return r.stopped(l, d)
	}
	if l.forced {
		return r.grant(l, d)
	}
	if l.held != "" {
		d.State, d.Message = DrainBlocked, l.held
		if l.member.Drain != nil {
			d.Phase = l.member.Drain.Phase
		}
		return d
	}
	if block := r.blockedByMode(l); block != "" {
		d.State, d.Message = DrainBlocked, block
		return d
	}
	if r.mux.Keyspace == muxconfig.KeyspaceSpread {
		if wait := r.unmoved(l, &d); wait {
			return d
		}
	}
	switch {
	case granted != "" && granted != l.member.Name:
		d.State, d.Message = DrainBlocked, fmt.Sprintf("member %s drains first, one goes at a time", granted)
	case r.notServed() != "":
		d.State, d.Message = DrainBlocked, r.notServed()
	default:
		return r.grant(l, d)
	}
	return d
}

// blockedByMode names the rule of the mux's mode that keeps l, or "".
func (r drainRules) blockedByMode(l leaving) string {
	if r.mux.Mode == muxconfig.ModeShield && r.mux.Members[0].Name == l.member.Name {
		return fmt.Sprintf("member %s is the origin of a shield and cannot be drained; add the new origin in a mux of its own", l.member.Name)
	}
	stay := len(r.staying)
	if least := muxconfig.MinMembers(r.mux.Mode); stay < least {
		return fmt.Sprintf("mode %s needs %d member(s) that stay and has %d; add a backend to spec.backends%s first", r.mux.Mode, least, stay, r.ofNested())
	}
	return ""
}

// ofNested says whose spec is meant, where that is not the root's.
func (r drainRules) ofNested() string {
	if r.mux.Name == r.stored.Root {
		return ""
	}
	return " of StorageMux " + r.mux.Name
}

// unmoved holds, in keyspace spread, the objects of l until they are elsewhere.
// It sets phase ReadOnly and reports true while that is not so.
func (r drainRules) unmoved(l leaving, d *Drain) bool {
	d.Phase = muxconfig.DrainReadOnly
	if pods := r.waitingFor(l, muxconfig.DrainReadOnly); len(pods) > 0 {
		d.State, d.Message, d.Waiting = DrainStopping, "writes to it are being stopped; waiting for "+list(pods), pods
		return true
	}
	if l.moved || r.storeEmpty(l) == emptyEverywhere {
		return false
	}
	d.State = DrainBlocked
	d.Message = fmt.Sprintf("in keyspace spread member %s may hold objects that no other member has; "+
		"copy them to another member, then annotate %s with storagemux.dev/data-moved=true", l.member.Name, describe(&l.member))
	return true
}

// grant lets l go: it is not chosen any more from the next document on.
func (r drainRules) grant(l leaving, d Drain) Drain {
	deadline := r.now.Add(l.timeout).UTC().Truncate(time.Second)
	d.State, d.Phase, d.Deadline = DrainStopping, muxconfig.DrainGranted, &deadline
	d.Message = "waiting for every proxy to stop choosing it"
	return d
}

// stopped continues a drain that was granted in the stored document.
func (r drainRules) stopped(l leaving, d Drain) Drain {
	d.State, d.Phase, d.Deadline = DrainStopping, muxconfig.DrainGranted, l.member.Drain.Deadline
	if pods := r.waitingFor(l, muxconfig.DrainGranted); len(pods) > 0 {
		d.Message, d.Waiting = "waiting for requests on it to finish in "+list(pods), pods
		if r.now.After(d.Deadline.Add(OverdueGrace)) {
			d.Overdue = pods
		}
		return d
	}
	if r.mux.Keyspace == muxconfig.KeyspaceSpread && !l.moved && !l.forced {
		switch r.storeEmpty(l) {
		case emptyUnknown:
			d.Message = "waiting for every proxy to see that its store is empty"
			return d
		case emptyNot:
			// A write that was under way came to its end after the store
			// had been seen empty: back to where it can be read.
			d.Phase, d.Deadline = muxconfig.DrainReadOnly, nil
			d.State, d.Message = DrainBlocked, "its store is not empty"
			return d
		}
	}
	d.State, d.Phase, d.Deadline, d.Message = DrainReleased, "", nil, ""
	return d
}

// waitingFor returns the pods that did not report l done in that phase under
// the stored document.
func (r drainRules) waitingFor(l leaving, phase muxconfig.DrainPhase) []string {
	var pods []string
	for _, p := range r.proxies {
		if !p.Running {
			continue
		}
		done := func(m *muxconfig.MemberReport) bool {
			return m != nil && m.Drain != nil && m.Drain.Phase == phase && m.Drain.Done
		}
		if !r.everywhere(l, p, done) {
			pods = append(pods, p.Pod)
		}
	}
	slices.Sort(pods)
	return pods
}

// everywhere reports whether what p says of l is so at every place of its mux.
func (r drainRules) everywhere(l leaving, p Proxy, is func(*muxconfig.MemberReport) bool) bool {
	return !slices.ContainsFunc(r.places, func(place string) bool {
		return !is(p.member(r.stored, muxconfig.JoinPath(place, l.member.Name)))
	})
}

type emptiness int

const (
	emptyUnknown emptiness = iota
	emptyNot
	emptyEverywhere
)

// storeEmpty joins what the running proxies say of l's store.
func (r drainRules) storeEmpty(l leaving) emptiness {
	seen := emptyUnknown
	for _, p := range r.proxies {
		if !p.Running {
			continue
		}
		known := func(m *muxconfig.MemberReport) bool { return m != nil && m.Drain != nil && m.Drain.StoreEmpty != nil }
		switch {
		case !r.everywhere(l, p, known):
			return emptyUnknown
		case !r.everywhere(l, p, func(m *muxconfig.MemberReport) bool { return *m.Drain.StoreEmpty }):
			return emptyNot
		}
		seen = emptyEverywhere
	}
	return seen
}

// notServed says why the members that stay cannot take over, or "".
func (r drainRules) notServed() string {
	for _, p := range r.proxies {
		if !p.Running {
			continue
		}
		if p.Report == nil || p.Stale {
			if p.Ready {
				return "waiting for a report of " + p.Pod
			}
			continue
		}
		if !r.otherUp(p) {
			return fmt.Sprintf("no other member that stays is up in %s", p.Pod)
		}
	}
	return ""
}

// otherUp reports whether p sees a member that stays up at every place of the mux.
func (r drainRules) otherUp(p Proxy) bool {
	up := map[string]bool{}
	for _, m := range p.Report.Members {
		up[m.Path] = m.State == muxconfig.StateUp
	}
	return !slices.ContainsFunc(r.places, func(place string) bool {
		return !slices.ContainsFunc(r.staying, func(name string) bool { return up[muxconfig.JoinPath(place, name)] })
	})
}

// granted returns the name of a member whose drain is granted in the stored
// document and was not forced, or "".
func (r drainRules) granted() string {
	for _, l := range r.leaving {
		if !l.forced && l.member.Drain != nil && l.member.Drain.Phase == muxconfig.DrainGranted {
			return l.member.Name
		}
	}
	return ""
}

// list joins at most four names.
func list(names []string) string {
	const most = 4
	text := ""
	for i, name := range names {
		switch {
		case i == most:
			return fmt.Sprintf("%s and %d more", text, len(names)-most)
		case i > 0:
			text += ", "
		}
		text += name
	}
	return text
}

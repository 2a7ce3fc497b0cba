package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// topology is the work on a mux and all that it nests: one assembly for each
// mux, however many members it is, and what is wrong with the members that are
// left out.
type topology struct {
	facts    Facts
	muxes    map[string]*assembly
	order    []*assembly // parents before children
	problems []Verdict
}

func newTopology(f Facts) *topology { return &topology{facts: f, muxes: map[string]*assembly{}} }

// gather assembles mux and, before it returns, all that it nests.
func (t *topology) gather(mux *v1alpha1.StorageMux) *assembly {
	if a := t.muxes[mux.Name]; a != nil {
		return a
	}
	a := &assembly{tree: t, prefix: prefixOf(t.facts, mux), wire: wireMux(mux), stored: t.storedMux(mux.Name, string(mux.UID))}
	t.muxes[mux.Name] = a
	t.order = append(t.order, a)
	a.assemble(mux)
	return a
}

// gatherStored assembles a mux of the stored document as it is there.
func (t *topology) gatherStored(name string) {
	if t.muxes[name] != nil {
		return
	}
	a := &assembly{tree: t, stored: t.facts.Stored.Mux(name)}
	t.muxes[name] = a
	t.order = append(t.order, a)
	a.freeze()
}

// object returns the resource that a member names, or nil.
func (t *topology) object(member *muxconfig.Member) metav1.Object {
	if member.Mux != "" {
		if m := t.facts.mux(member.Mux); m != nil {
			return m
		}
		return nil
	}
	if b := t.facts.Backends[member.Backend]; b != nil {
		return b
	}
	return nil
}

// current returns the resource behind a stored member, nil if it is gone or
// another one has its name.
func (t *topology) current(member *muxconfig.Member) metav1.Object {
	object := t.object(member)
	if object == nil {
		return nil
	}
	if b := t.storedBackend(member); b != nil && b.UID == string(object.GetUID()) {
		return object
	}
	if t.storedMux(member.Mux, string(object.GetUID())) != nil {
		return object
	}
	return nil
}

// storedMux returns the mux of the stored document with this name and UID, or
// nil.
func (t *topology) storedMux(name, uid string) *muxconfig.Mux {
	if t.facts.Stored == nil || name == "" {
		return nil
	}
	if m := t.facts.Stored.Mux(name); m != nil && m.UID == uid {
		return m
	}
	return nil
}

// storedBackend returns what the stored document says of a member that is a
// leaf, or nil.
func (t *topology) storedBackend(member *muxconfig.Member) *muxconfig.Backend {
	if t.facts.Stored == nil || member.Backend == "" {
		return nil
	}
	return t.facts.Stored.Backend(member.Backend)
}

// drainTimeout is the drainTimeout of a member's StorageBackend, or the longest
// of those in a nested mux.
func (t *topology) drainTimeout(member *muxconfig.Member, seen map[string]bool) time.Duration {
	if member.Mux == "" {
		if b := t.facts.Backends[member.Backend]; b != nil {
			return b.Spec.DrainTimeout.Or(defaultDrainTimeout)
		}
		return defaultDrainTimeout
	}
	longest := time.Duration(0)
	if a := t.muxes[member.Mux]; a != nil && !seen[member.Mux] {
		seen[member.Mux] = true
		for i := range a.slots {
			longest = max(longest, t.drainTimeout(&a.slots[i].member, seen))
		}
	}
	return cmp.Or(longest, defaultDrainTimeout)
}

// verdict joins the problems into one: the first gives the reason.
func (t *topology) verdict() Verdict {
	if len(t.problems) == 0 {
		return Verdict{OK: true, Reason: v1alpha1.ReasonResolvedRefs, Message: "every reference is resolved"}
	}
	const most = 8
	var messages []string
	for _, p := range t.problems[:min(most, len(t.problems))] {
		messages = append(messages, p.Message)
	}
	if more := len(t.problems) - most; more > 0 {
		messages = append(messages, fmt.Sprintf("and %d more", more))
	}
	return Verdict{Reason: t.problems[0].Reason, Message: strings.Join(messages, "; ")}
}

// drains decides the step of every leaving member of every mux.
func (t *topology) drains() []Drain {
	if t.facts.Stored == nil {
		return nil
	}
	places := t.places()
	var drains []Drain
	for _, a := range t.order {
		if a.stored == nil {
			continue
		}
		rules := drainRules{
			stored: t.facts.Stored, mux: a.stored, places: places[a.stored.Name],
			proxies: t.facts.Proxies, now: t.facts.Now,
		}
		for _, s := range a.slots {
			if s.leaving != nil {
				rules.leaving = append(rules.leaving, *s.leaving)
			} else if a.storedMember(s.member.Name) != nil {
				rules.staying = append(rules.staying, s.member.Name)
			}
		}
		drains = append(drains, rules.decide()...)
	}
	return drains
}

// places are the paths at which each mux of the stored document stands; the
// root's is empty.
func (t *topology) places() map[string][]string {
	stored := t.facts.Stored
	places := map[string][]string{stored.Root: {""}}
	_ = muxconfig.Walk(stored, func(path string, _ *muxconfig.Mux, member *muxconfig.Member) {
		if below := stored.Below(member); below != nil {
			places[below.Name] = append(places[below.Name], path)
		}
	})
	return places
}

// document puts together what the root reaches, with the steps that leaving
// members take.
func (t *topology) document(frontend muxconfig.Frontend, drains []Drain) *muxconfig.Document {
	mux := t.facts.Mux
	doc := &muxconfig.Document{
		Schema: schemaFor(t.facts),
		Owner:  muxconfig.Owner{Namespace: mux.Namespace, Name: mux.Name, UID: string(mux.UID)},

		Frontend: frontend,
		Admin:    t.facts.Material.Admin,
		Keys:     t.facts.Material.Keys,
		Root:     mux.Name,
	}
	backends := map[string]slot{}
	t.add(doc, doc.Root, drains, backends, map[string]bool{})
	for _, s := range backends {
		doc.Backends = append(doc.Backends, *s.backend)
	}
	slices.SortFunc(doc.Muxes, func(a, b muxconfig.Mux) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(doc.Backends, func(a, b muxconfig.Backend) int { return cmp.Compare(a.Name, b.Name) })
	doc.Released = t.released(doc)
	return doc
}

// add puts a mux and all below it into doc. Of a backend that is several
// members, one that serves says how, since one that leaves is as it was.
func (t *topology) add(doc *muxconfig.Document, name string, drains []Drain, backends map[string]slot, seen map[string]bool) {
	if seen[name] {
		return
	}
	seen[name] = true
	a := t.muxes[name]
	wire := a.wire
	wire.Members = nil
	for _, s := range a.members(drains) {
		wire.Members = append(wire.Members, s.member)
		if s.backend == nil {
			t.add(doc, s.member.Mux, drains, backends, seen)
			continue
		}
		if known, ok := backends[s.backend.Name]; !ok || known.leaving != nil && s.leaving == nil {
			backends[s.backend.Name] = s
		}
		if s.backend.Fallback != nil {
			t.add(doc, muxconfig.LadderName(s.backend.Name), drains, backends, seen)
		}
	}
	doc.Muxes = append(doc.Muxes, wire)
}

// released names what specs of the topology list, that is being deleted and
// that doc does not hold.
func (t *topology) released(doc *muxconfig.Document) []muxconfig.Released {
	var released []muxconfig.Released
	EachListed(t.facts.Mux, t.facts.mux, t.facts.FindBackend, func(object *muxconfig.Member) bool {
		found := t.object(object)
		if found == nil {
			return false
		}
		gone := found.GetDeletionTimestamp() != nil && !holds(doc, object, string(found.GetUID()))
		if gone {
			released = append(released, muxconfig.Released{Name: found.GetName(), UID: string(found.GetUID())})
		}
		return !gone
	})
	slices.SortFunc(released, func(a, b muxconfig.Released) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return slices.Compact(released)
}

func holds(doc *muxconfig.Document, member *muxconfig.Member, uid string) bool {
	if member.Mux != "" {
		m := doc.Mux(member.Mux)
		return m != nil && m.UID == uid
	}
	b := doc.Backend(member.Backend)
	return b != nil && b.UID == uid
}

// EachListed calls visit for what the specs of root, and of the muxes and fallback
// backends in it, list: as a member that names a backend or a mux. It goes into a
// mux or a fallback backend, once, where one of the functions knows it and visit
// reports true.
func EachListed(root *v1alpha1.StorageMux, findMux func(name string) *v1alpha1.StorageMux,
	findBackend func(name string) *v1alpha1.StorageBackend, visit func(*muxconfig.Member) bool,
) {
	seen := map[string]bool{root.Name: true}
	for queue := []*v1alpha1.StorageMux{root}; len(queue) > 0; queue = queue[1:] {
		for i := range queue[0].Spec.Backends {
			spec := &queue[0].Spec.Backends[i]
			kind, name := spec.Target()
			member := &muxconfig.Member{Name: spec.Name, Backend: name}
			var below *v1alpha1.StorageMux
			if kind == v1alpha1.MemberKindStorageMux {
				member.Backend, member.Mux = "", name
				below = findMux(name)
			} else if b := findBackend(name); b != nil && b.Spec.Fallback != nil {
				below = listOf(b, findBackend)
			}
			if visit(member) && below != nil && !seen[below.Name] {
				seen[below.Name] = true
				queue = append(queue, below)
			}
		}
	}
}

// listOf returns a fallback backend as a mux that lists what its candidates name.
// For a bucket, findBackend is asked for "bucket/" and its name.
func listOf(b *v1alpha1.StorageBackend, findBackend func(name string) *v1alpha1.StorageBackend) *v1alpha1.StorageMux {
	backends, muxes, buckets := References(b)
	for _, bucket := range buckets {
		if found := findBackend(BucketKey(bucket)); found != nil {
			backends = append(backends, found.Name)
		}
	}
	list := &v1alpha1.StorageMux{}
	list.Name = muxconfig.LadderName(b.Name)
	add := func(kind v1alpha1.MemberKind, names []string) {
		for _, name := range names {
			list.Spec.Backends = append(list.Spec.Backends, v1alpha1.Member{Name: name, Ref: &v1alpha1.MemberReference{Kind: kind, Name: name}})
		}
	}
	add(v1alpha1.MemberKindStorageBackend, backends)
	add(v1alpha1.MemberKindStorageMux, muxes)
	return list
}

// BucketKey is what stands, in place of a name, for the one StorageBackend with
// that bucket. No resource can have it as its name.
func BucketKey(bucket string) string { return "bucket/" + bucket }

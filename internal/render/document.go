package render

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// Document makes the next document of a mux from its facts. What the user has
// to mend is in the verdicts; an error means that nothing must be written.
//
// A mux that is not accepted, whose endpoint cannot be resolved, or that would
// fall below its mode's minimum, keeps the topology of the stored document;
// members of it that are being deleted drain all the same.
func Document(f Facts) (Result, error) {
	if f.Stored != nil && f.Stored.Transitions > f.Transitions {
		return Result{}, ErrDeposed
	}
	result := Result{Accepted: AcceptMux(f)}
	a := gatherMembers(f)
	frontend := a.frontend()
	result.ResolvedRefs = a.verdict()
	if result.Accepted.OK && frontend != nil {
		result.Drains = a.drains()
		next := a.document(wireMux(f.Mux), *frontend, result.Drains)
		if a.enough(next) {
			return seal(f, result, next)
		}
	}
	if f.Stored == nil {
		return result, nil
	}
	a = gatherStored(f)
	result.Drains = a.drains()
	return seal(f, result, a.document(*a.stored, f.Stored.Frontend, result.Drains))
}

// enough reports whether the mode can work with what the document holds, or was
// made to do without by a forced removal.
func (a *assembly) enough(d *muxconfig.Document) bool {
	root := d.Mux(d.Root)
	return len(root.Members) >= muxconfig.MinMembers(root.Mode) || a.stored != nil && len(d.Released) > 0
}

// seal numbers and checks the next document, and keeps the stored one where it
// says the same.
func seal(f Facts, result Result, next *muxconfig.Document) (Result, error) {
	result.Document = f.Stored
	next.Revision = 1 + f.KnownRevision
	if f.Stored != nil {
		next.Revision = 1 + max(f.Stored.Revision, f.KnownRevision)
	}
	next.Transitions = f.Transitions
	if _, err := muxconfig.Encode(next); err != nil {
		var broken *muxconfig.InvalidError
		if !errors.As(err, &broken) {
			return Result{}, fmt.Errorf("render StorageMux %s: %w", f.Mux.Name, err)
		}
		reason := v1alpha1.ReasonInvalid
		if broken.Field == "" {
			reason = v1alpha1.ReasonTooLarge
		}
		result.Accepted = refuse(reason, "%s", broken.Error())
		return result, nil
	}
	if f.Stored == nil || f.Stored.Hash != next.Hash {
		result.Document = next
	}
	return result, nil
}

// assembly is the work on one mux: its members, sorted into those that serve
// and those that leave, and what is wrong with the rest.
type assembly struct {
	facts    Facts
	stored   *muxconfig.Mux // the root mux of Facts.Stored, or nil
	slots    []slot
	problems []Verdict
}

// slot is one place in the list of members.
type slot struct {
	member  muxconfig.Member
	backend muxconfig.Backend
	// leaving is nil for a member that serves.
	leaving *leaving
}

// gatherMembers puts the members of the spec, and after them those that only
// the stored document holds, into slots.
func gatherMembers(f Facts) *assembly {
	a := &assembly{facts: f}
	if f.Stored != nil {
		a.stored = f.Stored.Mux(f.Stored.Root)
	}
	taken := map[string]bool{}
	for i := range f.Mux.Spec.Backends {
		a.listed(&f.Mux.Spec.Backends[i], taken)
	}
	if a.stored != nil {
		for i := range a.stored.Members {
			if member := a.stored.Members[i]; !taken[member.Name] {
				a.unlisted(i, member)
			}
		}
	}
	return a
}

// gatherStored puts the members of the stored document into slots as they are,
// but for those whose StorageBackend is being deleted or that leave already.
func gatherStored(f Facts) *assembly {
	a := &assembly{facts: f, stored: f.Stored.Mux(f.Stored.Root)}
	for _, member := range a.stored.Members {
		wire := f.Stored.Backend(member.Backend)
		b := f.Backends[member.Backend]
		s := slot{member: member, backend: *wire}
		if a.exists(wire) && (b.DeletionTimestamp != nil || member.Drain != nil) {
			s.leaving = a.leave(member, b, "is being deleted")
		}
		a.slots = append(a.slots, s)
	}
	return a
}

// listed takes in a member of the spec. taken collects the names of stored
// members that it continues.
func (a *assembly) listed(spec *v1alpha1.Member, taken map[string]bool) {
	kind, name := spec.Target()
	if kind != v1alpha1.MemberKindStorageBackend {
		return
	}
	field := fmt.Sprintf("spec.backends[%s]", spec.Name)
	b := a.facts.Backends[name]
	old, oldBackend := a.storedMember(spec.Name)
	continues := old != nil && b != nil && old.Backend == name && oldBackend.UID == string(b.UID)
	member := muxconfig.Member{Name: spec.Name, Backend: name, Weight: spec.Weight}
	switch {
	case b == nil:
		a.problem(v1alpha1.ReasonBackendNotFound, "%s: no StorageBackend is named %s", field, name)
	case old != nil && !continues && a.exists(oldBackend):
		a.problem(v1alpha1.ReasonBackendNotReady, "%s: waiting until StorageBackend %s, which had this name before, has been drained", field, old.Backend)
	case b.DeletionTimestamp != nil:
		a.problem(v1alpha1.ReasonBackendDeleted, "%s: StorageBackend %s is being deleted", field, name)
		if continues {
			taken[spec.Name] = true
			member.Drain = old.Drain
			a.slots = append(a.slots, slot{member, *oldBackend, a.leave(member, b, "is being deleted")})
		}
	default:
		if continues {
			taken[spec.Name] = true
		}
		a.serve(field, member, b, continues, oldBackend)
	}
}

// serve takes in a member that is to serve, with the credentials it had before
// where the new ones cannot be had.
func (a *assembly) serve(field string, member muxconfig.Member, b *v1alpha1.StorageBackend, continues bool, old *muxconfig.Backend) {
	if v := AcceptBackend(b, a.facts.Standalone); !v.OK {
		a.problem(v1alpha1.ReasonMemberNotAccepted, "%s: StorageBackend %s: %s", field, b.Name, v.Message)
		return
	}
	if !a.facts.Standalone && !continues && !slices.Contains(b.Finalizers, v1alpha1.FinalizerDrain) {
		a.problem(v1alpha1.ReasonBackendNotReady, "%s: waiting until StorageBackend %s has its finalizer", field, b.Name)
		return
	}
	wire, v := wireBackend(b, a.facts)
	if !v.OK {
		a.problem(v.Reason, "%s: StorageBackend %s: %s", field, b.Name, v.Message)
		if !continues {
			return
		}
		wire = *old
	}
	a.slots = append(a.slots, slot{member, wire, nil})
}

// unlisted takes in a member that the spec does not list any more, at its old
// place, so that a shield keeps its origin.
func (a *assembly) unlisted(index int, member muxconfig.Member) {
	wire := a.facts.Stored.Backend(member.Backend)
	if !a.exists(wire) {
		return
	}
	if member.Weight != nil && a.facts.Mux.Spec.Mode != v1alpha1.ModeWeighted {
		member.Weight = nil
	}
	if member.Weight == nil && a.facts.Mux.Spec.Mode == v1alpha1.ModeWeighted {
		member.Weight = new(int32)
	}
	l := a.leave(member, a.facts.Backends[wire.Name], "is no longer in spec.backends")
	a.slots = slices.Insert(a.slots, min(index, len(a.slots)), slot{member, *wire, l})
}

func (a *assembly) leave(member muxconfig.Member, b *v1alpha1.StorageBackend, why string) *leaving {
	return &leaving{
		member: member, uid: string(b.UID), why: why,
		timeout: b.Spec.DrainTimeout.Or(defaultDrainTimeout),
		forced:  b.Annotations[v1alpha1.AnnotationForceRemoval] == v1alpha1.AnnotationTrue,
		moved:   b.Annotations[v1alpha1.AnnotationDataMoved] == v1alpha1.AnnotationTrue,
	}
}

func (a *assembly) storedMember(name string) (*muxconfig.Member, *muxconfig.Backend) {
	if a.stored == nil {
		return nil, nil
	}
	for i := range a.stored.Members {
		if m := &a.stored.Members[i]; m.Name == name {
			return m, a.facts.Stored.Backend(m.Backend)
		}
	}
	return nil, nil
}

// exists reports whether the resource behind wire is still the same object.
func (a *assembly) exists(wire *muxconfig.Backend) bool {
	b := a.facts.Backends[wire.Name]
	return b != nil && string(b.UID) == wire.UID
}

func (a *assembly) problem(reason, format string, args ...any) {
	a.problems = append(a.problems, refuse(reason, format, args...))
}

// verdict joins the problems into one: the first gives the reason.
func (a *assembly) verdict() Verdict {
	if len(a.problems) == 0 {
		return Verdict{OK: true, Reason: v1alpha1.ReasonResolvedRefs, Message: "every reference is resolved"}
	}
	const most = 8
	var messages []string
	for _, p := range a.problems[:min(most, len(a.problems))] {
		messages = append(messages, p.Message)
	}
	if more := len(a.problems) - most; more > 0 {
		messages = append(messages, fmt.Sprintf("and %d more", more))
	}
	return Verdict{Reason: a.problems[0].Reason, Message: strings.Join(messages, "; ")}
}

// frontend resolves what the endpoint needs. Secrets that are gone or invalid
// keep what the stored document has; without that the result is nil.
func (a *assembly) frontend() *muxconfig.Frontend {
	spec := a.facts.Mux.Spec.Frontend
	wire := &muxconfig.Frontend{Bucket: a.facts.Mux.FrontendBucket(), Auth: muxconfig.FrontendSigV4}
	complete := true
	if spec.Auth.Type == v1alpha1.FrontendAuthNone {
		wire.Auth = muxconfig.FrontendNone
	} else if len(spec.Auth.SecretRefs) == 0 {
		wire.KeyPairs = []muxconfig.KeyPair{a.facts.Material.Client}
	} else {
		for i, ref := range spec.Auth.SecretRefs {
			pair, v := keyPair(a.facts, fmt.Sprintf("spec.frontend.auth.secretRefs[%d]", i), ref.Name)
			if !v.OK {
				a.problems = append(a.problems, v)
				complete = false
				continue
			}
			wire.KeyPairs = append(wire.KeyPairs, pair)
		}
		if !complete && a.facts.Stored != nil && len(a.facts.Stored.Frontend.KeyPairs) > 0 {
			wire.KeyPairs, complete = a.facts.Stored.Frontend.KeyPairs, true
		}
	}
	if ref := spec.TLSSecretRef; ref != nil {
		pair, v := certificate(a.facts, "spec.frontend.tlsSecretRef", ref.Name)
		switch {
		case v.OK:
			wire.TLS = pair
		case a.facts.Stored != nil && a.facts.Stored.Frontend.TLS != nil:
			a.problems = append(a.problems, v)
			wire.TLS = a.facts.Stored.Frontend.TLS
		default:
			a.problems = append(a.problems, v)
			complete = false
		}
	}
	if !complete {
		return nil
	}
	return wire
}

// drains decides the step of every leaving member.
func (a *assembly) drains() []Drain {
	if a.stored == nil {
		return nil
	}
	rules := drainRules{stored: a.facts.Stored, mux: a.stored, proxies: a.facts.Proxies, now: a.facts.Now}
	for _, s := range a.slots {
		if s.leaving != nil {
			rules.leaving = append(rules.leaving, *s.leaving)
		} else if old, _ := a.storedMember(s.member.Name); old != nil {
			rules.staying = append(rules.staying, s.member.Name)
		}
	}
	return rules.decide()
}

// document puts the slots together, with the steps that leaving members take.
// The members of root are replaced.
func (a *assembly) document(root muxconfig.Mux, frontend muxconfig.Frontend, drains []Drain) *muxconfig.Document {
	mux := a.facts.Mux
	doc := &muxconfig.Document{
		Schema: muxconfig.SchemaVersion,
		Owner:  muxconfig.Owner{Namespace: mux.Namespace, Name: mux.Name, UID: string(mux.UID)},

		Frontend: frontend,
		Admin:    a.facts.Material.Admin,
		Keys:     a.facts.Material.Keys,
		Root:     mux.Name,
	}
	root.Members = nil
	for _, s := range a.slots {
		member := s.member
		if s.leaving != nil {
			i := slices.IndexFunc(drains, func(d Drain) bool { return d.Member == member.Name })
			if drains[i].State == DrainReleased {
				continue
			}
			member.Drain = nil
			if drains[i].Phase != "" {
				member.Drain = &muxconfig.Drain{Phase: drains[i].Phase, Deadline: drains[i].Deadline}
			}
		}
		root.Members = append(root.Members, member)
		if doc.Backend(s.backend.Name) == nil {
			doc.Backends = append(doc.Backends, s.backend)
		}
	}
	slices.SortFunc(doc.Backends, func(a, b muxconfig.Backend) int { return cmp.Compare(a.Name, b.Name) })
	doc.Muxes = []muxconfig.Mux{root}
	doc.Released = a.released(doc)
	return doc
}

// released names the backends that the spec lists, that are being deleted and
// that doc does not hold.
func (a *assembly) released(doc *muxconfig.Document) []muxconfig.Released {
	var released []muxconfig.Released
	for i := range a.facts.Mux.Spec.Backends {
		_, name := a.facts.Mux.Spec.Backends[i].Target()
		b := a.facts.Backends[name]
		if b == nil || b.DeletionTimestamp == nil {
			continue
		}
		if held := doc.Backend(name); held == nil || held.UID != string(b.UID) {
			released = append(released, muxconfig.Released{Name: name, UID: string(b.UID)})
		}
	}
	slices.SortFunc(released, func(a, b muxconfig.Released) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Compact(released)
}

func wireMux(mux *v1alpha1.StorageMux) muxconfig.Mux {
	spec := mux.Spec
	wire := muxconfig.Mux{
		Name: mux.Name, UID: string(mux.UID),
		Mode: string(spec.Mode), Keyspace: string(spec.Keyspace),
		OnFanoutPartial: string(spec.OnFanoutPartial),
		BackendTimeout:  muxconfig.Duration(spec.BackendTimeout.Or(30 * time.Second)),
		Retry: muxconfig.Retry{
			MaxAttempts:     valueOr(spec.Retry.MaxAttempts, 3),
			InitialInterval: muxconfig.Duration(spec.Retry.InitialInterval.Or(50 * time.Millisecond)),
			MaxInterval:     muxconfig.Duration(spec.Retry.MaxInterval.Or(time.Second)),
		},
		Health: muxconfig.Health{
			Cooldown:    muxconfig.Duration(spec.Health.Cooldown.Or(time.Second)),
			MaxCooldown: muxconfig.Duration(spec.Health.MaxCooldown.Or(64 * time.Second)),
			WhenAllDown: cmp.Or(string(spec.Health.WhenAllDown), string(v1alpha1.AllDownTry)),
		},
	}
	if spec.Mode == v1alpha1.ModeStickyByKey {
		wire.StickyHash = string(v1alpha1.StickyHashFNV1aModulo)
		if spec.Sticky != nil && spec.Sticky.Hash != "" {
			wire.StickyHash = string(spec.Sticky.Hash)
		}
	}
	return wire
}

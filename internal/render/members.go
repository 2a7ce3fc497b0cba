package render

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// assembly is the work on one mux of a topology: its members, sorted into those
// that serve and those that leave.
type assembly struct {
	tree *topology
	// prefix begins what is said of the mux's fields.
	prefix string
	// wire is the mux without members.
	wire muxconfig.Mux
	// stored is this mux in Facts.Stored, or nil.
	stored *muxconfig.Mux
	slots  []slot
}

// slot is one place in the list of members.
type slot struct {
	member muxconfig.Member
	// backend is nil for a nested mux.
	backend *muxconfig.Backend
	// leaving is nil for a member that serves.
	leaving *leaving
}

// assemble puts the members of the spec, and after them those that only the
// stored document holds, into slots.
func (a *assembly) assemble(mux *v1alpha1.StorageMux) {
	taken := map[string]bool{}
	for i := range mux.Spec.Backends {
		a.listed(&mux.Spec.Backends[i], taken)
	}
	if a.stored == nil {
		return
	}
	for i, member := range a.stored.Members {
		if !taken[member.Name] {
			a.unlisted(i, member)
		}
	}
}

// freeze puts the members of the stored document into slots as they are, but
// for those whose resource is being deleted or that leave already.
func (a *assembly) freeze() {
	a.wire, a.slots = *a.stored, nil
	for _, member := range a.stored.Members {
		s := slot{member: member, backend: a.keep(&member)}
		if member.Mux != "" {
			a.tree.gatherStored(member.Mux)
		}
		object := a.tree.current(&member)
		if object != nil && (object.GetDeletionTimestamp() != nil || member.Drain != nil) {
			s.leaving = a.leave(member, object)
		}
		a.slots = append(a.slots, s)
	}
}

// usable reports whether the mode can work with the members there are. A mux
// that fell below its minimum keeps the members that it had.
func (a *assembly) usable() bool {
	if len(a.slots) >= muxconfig.MinMembers(a.wire.Mode) {
		return true
	}
	if a.stored == nil || len(a.stored.Members) < muxconfig.MinMembers(a.stored.Mode) {
		return false
	}
	a.freeze()
	return true
}

// listed takes in a member of the spec. taken collects the names of stored
// members that it continues.
func (a *assembly) listed(spec *v1alpha1.Member, taken map[string]bool) {
	kind, name := spec.Target()
	member := muxconfig.Member{Name: spec.Name, Weight: spec.Weight}
	if kind == v1alpha1.MemberKindStorageMux {
		member.Mux = name
	} else {
		member.Backend = name
	}
	object := a.tree.object(&member)
	old := a.storedMember(spec.Name)
	held := old != nil && a.tree.current(old) != nil
	continues := held && old.Backend == member.Backend && old.Mux == member.Mux
	switch {
	case object == nil:
		a.problem(member, v1alpha1.ReasonBackendNotFound, "no %s is named %s", kind, name)
	case held && !continues:
		a.problem(member, v1alpha1.ReasonBackendNotReady, "waiting until %s, which had this name before, has been drained", describe(old))
	case object.GetDeletionTimestamp() != nil:
		a.problem(member, v1alpha1.ReasonBackendDeleted, "%s is being deleted", describe(&member))
		if continues {
			taken[spec.Name] = true
			member.Drain = old.Drain
			a.goOn(len(a.slots), member, object)
		}
	default:
		taken[spec.Name] = continues
		a.serve(member, object, continues)
	}
}

// serve takes in a member that is to serve.
func (a *assembly) serve(member muxconfig.Member, object metav1.Object, continues bool) {
	backend, isBackend := object.(*v1alpha1.StorageBackend)
	if isBackend {
		if v := AcceptBackend(backend, a.tree.facts.Standalone); !v.OK {
			a.problem(member, v1alpha1.ReasonMemberNotAccepted, "%s: %s", describe(&member), v.Message)
			return
		}
	}
	if !a.tree.facts.Standalone && !continues && !slices.Contains(object.GetFinalizers(), v1alpha1.FinalizerDrain) {
		a.problem(member, v1alpha1.ReasonBackendNotReady, "waiting until %s has its finalizer", describe(&member))
		return
	}
	if isBackend {
		a.serveBackend(member, backend, continues)
		return
	}
	mux := object.(*v1alpha1.StorageMux)
	if !a.tree.facts.Standalone && Paused(mux) && a.tree.storedMux(mux.Name, string(mux.UID)) == nil {
		a.problem(member, v1alpha1.ReasonBackendNotReady, "%s is paused and was not served before", describe(&member))
		return
	}
	nested := a.tree.gather(mux)
	if !nested.usable() {
		a.problem(member, v1alpha1.ReasonTooFewBackends, "%s has %d member(s) that can be used, and mode %s needs %d",
			describe(&member), len(nested.slots), nested.wire.Mode, muxconfig.MinMembers(nested.wire.Mode))
		return
	}
	a.slots = append(a.slots, slot{member: member})
}

// serveBackend takes in a leaf, with the credentials it had before where the
// new ones cannot be had.
func (a *assembly) serveBackend(member muxconfig.Member, b *v1alpha1.StorageBackend, continues bool) {
	if continues && Paused(b) {
		a.slots = append(a.slots, slot{member: member, backend: a.keep(&member)})
		return
	}
	wire, v := wireBackend(b, a.tree.facts)
	if !v.OK {
		a.problem(member, v.Reason, "%s: %s", describe(&member), v.Message)
		if !continues {
			return
		}
		wire = *a.tree.storedBackend(&member)
	}
	if wire.Fallback != nil && !a.ladderWorks(member, b) {
		return
	}
	a.slots = append(a.slots, slot{member: member, backend: &wire})
}

// ladderWorks gathers the candidates of a fallback backend and reports whether
// there are any that can be used.
func (a *assembly) ladderWorks(member muxconfig.Member, b *v1alpha1.StorageBackend) bool {
	works := a.tree.gather(ladder(a.tree.facts, b)).usable()
	if !works {
		a.problem(member, v1alpha1.ReasonTooFewBackends, "%s has no candidate that can be used", describe(&member))
	}
	return works
}

// unlisted takes in a member that the spec does not list any more, at its old
// place, so that a shield keeps its origin.
func (a *assembly) unlisted(index int, member muxconfig.Member) {
	object := a.tree.current(&member)
	if object == nil {
		return
	}
	if weighted := a.wire.Mode == muxconfig.ModeWeighted; !weighted {
		member.Weight = nil
	} else if member.Weight == nil {
		member.Weight = new(int32)
	}
	a.goOn(min(index, len(a.slots)), member, object)
}

// goOn takes in, at index, a member that is on its way out.
func (a *assembly) goOn(index int, member muxconfig.Member, object metav1.Object) {
	if mux, ok := object.(*v1alpha1.StorageMux); ok && !a.tree.gather(mux).usable() {
		return // nothing is left in it
	}
	s := slot{member: member, backend: a.keep(&member), leaving: a.leave(member, object)}
	a.slots = slices.Insert(a.slots, index, s)
}

// keep returns what the stored document says of a member, nil for a mux, and
// takes along the candidates that a fallback backend has there.
func (a *assembly) keep(member *muxconfig.Member) *muxconfig.Backend {
	backend := a.tree.storedBackend(member)
	if backend != nil && backend.Fallback != nil {
		a.tree.gatherStored(muxconfig.LadderName(member.Backend))
	}
	return backend
}

func (a *assembly) leave(member muxconfig.Member, object metav1.Object) *leaving {
	annotated := func(name string) bool { return object.GetAnnotations()[name] == v1alpha1.AnnotationTrue }
	return &leaving{
		member: member, uid: string(object.GetUID()), timeout: a.tree.drainTimeout(&member, map[string]bool{}),
		forced: annotated(v1alpha1.AnnotationForceRemoval), moved: annotated(v1alpha1.AnnotationDataMoved),
		held: a.held(object),
	}
}

func (a *assembly) storedMember(name string) *muxconfig.Member {
	if a.stored == nil {
		return nil
	}
	for i := range a.stored.Members {
		if m := &a.stored.Members[i]; m.Name == name {
			return m
		}
	}
	return nil
}

func (a *assembly) problem(member muxconfig.Member, reason, format string, args ...any) {
	place := "spec.backends[" + member.Name + "]: "
	if muxconfig.IsLadder(a.wire.Name) {
		place = "spec.fallback.uri: "
	}
	a.tree.problems = append(a.tree.problems, refuse(reason, a.prefix+place+format, args...))
}

// describe names the resource behind a member.
func describe(member *muxconfig.Member) string {
	if member.Mux != "" {
		return v1alpha1.KindStorageMux + " " + member.Mux
	}
	return v1alpha1.KindStorageBackend + " " + member.Backend
}

// members are the slots with the steps that leaving members take.
func (a *assembly) members(drains []Drain) []slot {
	var stay []slot
	for _, s := range a.slots {
		if s.leaving == nil {
			stay = append(stay, s)
			continue
		}
		i := slices.IndexFunc(drains, func(d Drain) bool { return d.Mux == a.wire.Name && d.Member == s.member.Name })
		if i >= 0 && drains[i].State == DrainReleased {
			continue
		}
		s.member.Drain = nil
		if i >= 0 && drains[i].Phase != "" {
			s.member.Drain = &muxconfig.Drain{Phase: drains[i].Phase, Deadline: drains[i].Deadline}
		}
		stay = append(stay, s)
	}
	return stay
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

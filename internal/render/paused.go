package render

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// Paused reports whether the annotation that stops the operator is set.
func Paused(object metav1.Object) bool {
	return object.GetAnnotations()[v1alpha1.AnnotationPaused] == v1alpha1.AnnotationTrue
}

// Pinned returns f with each nested mux that is paused as Stored has it, in
// place of its present spec: what contains it is rendered on, and it stays.
func (f Facts) Pinned() Facts {
	if f.Stored == nil {
		return f
	}
	muxes := maps.Clone(f.Muxes)
	for name, mux := range f.Muxes {
		if wire := f.Stored.Mux(name); Paused(mux) && wire != nil && wire.UID == string(mux.UID) {
			muxes[name] = f.asStored(mux, wire)
		}
	}
	f.Muxes = muxes
	return f
}

// asStored is mux with the spec from which wireMux makes wire. A member that
// was on its way out of the list is not listed, and so stays on its way.
func (f Facts) asStored(mux *v1alpha1.StorageMux, wire *muxconfig.Mux) *v1alpha1.StorageMux {
	pinned := mux.DeepCopy()
	pinned.Spec = v1alpha1.StorageMuxSpec{
		Mode: v1alpha1.Mode(wire.Mode), Keyspace: v1alpha1.Keyspace(wire.Keyspace),
		OnFanoutPartial: v1alpha1.FanoutPartialPolicy(wire.OnFanoutPartial),
		BackendTimeout:  lengthOf(wire.BackendTimeout),
		Retry: v1alpha1.RetrySpec{
			MaxAttempts: &wire.Retry.MaxAttempts, InitialInterval: lengthOf(wire.Retry.InitialInterval), MaxInterval: lengthOf(wire.Retry.MaxInterval),
		},
		Health: v1alpha1.HealthSpec{
			Cooldown: lengthOf(wire.Health.Cooldown), MaxCooldown: lengthOf(wire.Health.MaxCooldown),
			WhenAllDown: v1alpha1.AllDownPolicy(wire.Health.WhenAllDown),
		},
		Proxy: mux.Spec.Proxy,
	}
	if wire.StickyHash != "" {
		pinned.Spec.Sticky = &v1alpha1.StickySpec{Hash: v1alpha1.StickyHash(wire.StickyHash)}
	}
	for _, m := range wire.Members {
		if m.Drain != nil && !f.beingDeleted(&m) {
			continue
		}
		kind, name := v1alpha1.MemberKindStorageBackend, m.Backend
		if m.Mux != "" {
			kind, name = v1alpha1.MemberKindStorageMux, m.Mux
		}
		pinned.Spec.Backends = append(pinned.Spec.Backends, v1alpha1.Member{
			Name: m.Name, Weight: m.Weight, Ref: &v1alpha1.MemberReference{Kind: kind, Name: name},
		})
	}
	return pinned
}

func (f Facts) beingDeleted(member *muxconfig.Member) bool {
	if m := f.mux(member.Mux); m != nil {
		return m.DeletionTimestamp != nil
	}
	b := f.Backends[member.Backend]
	return b != nil && b.DeletionTimestamp != nil
}

func lengthOf(d muxconfig.Duration) v1alpha1.Duration {
	return v1alpha1.Duration(time.Duration(d).String())
}

// held says why a member of a must not leave yet although its resource, or the
// list, says so, or "".
func (a *assembly) held(object metav1.Object) string {
	because := func(kind, name string) string {
		return kind + " " + name + " is paused by the annotation " + v1alpha1.AnnotationPaused
	}
	if mux := a.tree.facts.mux(a.wire.Name); mux != nil && string(mux.UID) == a.wire.UID && Paused(mux) {
		return because(v1alpha1.KindStorageMux, mux.Name)
	}
	if object.GetDeletionTimestamp() == nil || !Paused(object) {
		return ""
	}
	if _, isMux := object.(*v1alpha1.StorageMux); isMux {
		return because(v1alpha1.KindStorageMux, object.GetName())
	}
	return because(v1alpha1.KindStorageBackend, object.GetName())
}

package render

import (
	"slices"
	"strings"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// walkSpecs visits every member under Facts.Mux as specs list them, parents
// before children. It refuses what no document can hold: a mode that is not
// built, a mux in itself, too many levels and too many members. visit may be
// nil.
func walkSpecs(f Facts, visit func(path string, kind v1alpha1.MemberKind, name string)) Verdict {
	w := specWalk{facts: f, visit: visit}
	return w.mux(f.Mux, "", nil)
}

type specWalk struct {
	facts   Facts
	visit   func(path string, kind v1alpha1.MemberKind, name string)
	members int
}

func (w *specWalk) mux(mux *v1alpha1.StorageMux, path string, above []string) Verdict {
	chain := append(slices.Clone(above), mux.Name)
	switch {
	case slices.Contains(above, mux.Name):
		return refuse(v1alpha1.ReasonCycle, "spec.backends: a StorageMux must not contain itself: %s", strings.Join(chain, " -> "))
	case len(chain) > muxconfig.MaxDepth:
		return refuse(v1alpha1.ReasonTooDeep, "spec.backends: StorageMuxes must not be nested more than %d levels deep: %s",
			muxconfig.MaxDepth, strings.Join(chain, " -> "))
	}
	for i := range mux.Spec.Backends {
		if v := w.member(&mux.Spec.Backends[i], path, chain); !v.OK {
			return v
		}
	}
	return pass
}

func (w *specWalk) member(member *v1alpha1.Member, parent string, chain []string) Verdict {
	if w.members++; w.members > muxconfig.MaxMembers {
		return refuse(v1alpha1.ReasonTooManyMembers, "spec.backends: there must be at most %d members at all depths together, nested StorageMuxes included",
			muxconfig.MaxMembers)
	}
	path := muxconfig.JoinPath(parent, member.Name)
	kind, name := member.Target()
	if w.visit != nil {
		w.visit(path, kind, name)
	}
	if kind != v1alpha1.MemberKindStorageMux {
		if b := w.facts.Backends[name]; b != nil && b.Spec.Fallback != nil {
			return w.mux(ladder(w.facts, b), path, chain)
		}
		return pass
	}
	nested := w.facts.mux(name)
	if nested == nil || nested.DeletionTimestamp != nil && !w.facts.held(string(nested.UID)) {
		return pass
	}
	return w.mux(nested, path, chain)
}

// mux returns the StorageMux of that name, the root included, or nil.
func (f Facts) mux(name string) *v1alpha1.StorageMux {
	if name == f.Mux.Name {
		return f.Mux
	}
	return f.Muxes[name]
}

// FindMux returns the StorageMux of that name, or nil.
func (f Facts) FindMux(name string) *v1alpha1.StorageMux { return f.Muxes[name] }

// FindBackend returns the StorageBackend of that name, or the only one with the
// bucket of that BucketKey, or nil.
func (f Facts) FindBackend(name string) *v1alpha1.StorageBackend {
	if bucket, is := strings.CutPrefix(name, BucketKey("")); is {
		if name, _ = withBucket(f, bucket); name == "" {
			return nil
		}
	}
	return f.Backends[name]
}

// held reports whether the stored document has the mux with this UID.
func (f Facts) held(uid string) bool {
	return f.Stored != nil && slices.ContainsFunc(f.Stored.Muxes, func(m muxconfig.Mux) bool { return m.UID == uid })
}

// prefixOf begins what is said of a mux in the topology of another.
func prefixOf(f Facts, mux *v1alpha1.StorageMux) string {
	switch backend, isLadder := strings.CutPrefix(mux.Name, muxconfig.LadderName("")); {
	case isLadder:
		return v1alpha1.KindStorageBackend + " " + backend + ": "
	case mux.Name == f.Mux.Name:
		return ""
	}
	return v1alpha1.KindStorageMux + " " + mux.Name + ": "
}

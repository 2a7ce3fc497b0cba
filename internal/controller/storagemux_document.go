package controller

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=create;update

// writeDocument stores the next document, if it says something new.
func (r *muxReconciler) writeDocument(ctx context.Context, scope *muxScope) error {
	before, next := scope.facts.Stored, scope.result.Document
	if scope.notOurs != nil && render.HasWorkload(scope.mux) {
		v := notOurs(scope.notOurs, "Secret", render.ConfigSecretName(scope.mux.Name))
		scope.children = &v
		scope.result.Document = nil
		return nil
	}
	if next == nil || next == before {
		return nil
	}
	stored, err := r.documents.write(ctx, scope.mux, scope.stored, next)
	if err != nil {
		scope.result.Document = before
		if ending(err) {
			return nil
		}
		return err
	}
	log.FromContext(ctx).Info("wrote a new document", "revision", next.Revision, "backends", len(next.Backends), "leaving", len(scope.result.Drains))
	scope.stored = stored
	r.fleet.Sync(types.NamespacedName{Namespace: scope.mux.Namespace, Name: scope.mux.Name}, stored.access(), fleetTargets(scope.mux, scope.pods))
	r.tellDrains(scope, before)
	return nil
}

// tellDrains records what the new document means for members on their way out.
func (r *muxReconciler) tellDrains(scope *muxScope, before *muxconfig.Document) {
	for _, d := range scope.result.Drains {
		r.wakeMember(scope.mux, d.Backend, d.Nested)
		if d.Phase == muxconfig.DrainGranted && !granted(before, d.Mux, d.Member) {
			r.events.both(scope.mux, scope.object(d.Backend, d.Nested), normal, reasonDrainStarted,
				"member %s is not chosen any more; what runs has until %s", d.Member, d.Deadline.Format("15:04:05 MST"))
		}
	}
}

// granted reports whether the member's drain is granted in doc.
func granted(doc *muxconfig.Document, mux, member string) bool {
	held := doc.Mux(mux)
	return held != nil && slices.ContainsFunc(held.Members, func(m muxconfig.Member) bool {
		return m.Name == member && m.Drain != nil && m.Drain.Phase == muxconfig.DrainGranted
	})
}

// notOurs says of an object with the name of a child why it is left alone.
func notOurs(why error, kind, name string) render.Verdict {
	if errors.Is(why, errFormer) {
		return render.Verdict{
			Reason:  v1alpha1.ReasonPending,
			Message: "waiting until " + kind + " " + name + " of an earlier StorageMux of this name has been removed",
		}
	}
	return render.Verdict{
		Reason:  v1alpha1.ReasonChildConflict,
		Message: kind + " " + name + " does not belong to this StorageMux and is left alone; rename or remove it",
	}
}

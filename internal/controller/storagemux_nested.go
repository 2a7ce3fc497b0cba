package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/render"
)

// hold adds the finalizer to a mux that others list, before they render it.
func (r *muxReconciler) hold(ctx context.Context, scope *muxScope) error {
	if render.Paused(scope.mux) {
		return nil
	}
	parents, err := r.graph.muxesWith(ctx, scope.mux.Namespace, indexMuxes, scope.mux.Name)
	if err != nil || len(parents) == 0 {
		return err
	}
	return r.addFinalizer(ctx, scope.mux)
}

// gatherAbove reads what the proxies of the muxes that contain this one say.
func (r *muxReconciler) gatherAbove(ctx context.Context, scope *muxScope) error {
	listed, err := r.graph.parents(ctx, scope.mux)
	if err != nil {
		return err
	}
	for _, name := range union(listed, r.fleet.Holders(string(scope.mux.UID))) {
		if name == scope.mux.Name {
			continue
		}
		key := types.NamespacedName{Namespace: scope.mux.Namespace, Name: name}
		pods, err := cachedPods(ctx, r.client, key)
		if err != nil {
			return err
		}
		scope.above = append(scope.above, r.proxiesOf(key, pods)...)
	}
	return nil
}

// phasesOfDeletion hold a mux that is being deleted until the proxies of others
// have let go of it. Its own proxies serve on meanwhile, so that a change of
// theirs, such as other credentials, still goes into the document they have. The
// other children stay as they are: in a foreground deletion they go first.
func (r *muxReconciler) phasesOfDeletion(ctx context.Context, scope *muxScope) (gone bool, err error) {
	if err := r.look(ctx, scope); err != nil {
		return false, err
	}
	if scope.stored != nil && !render.Paused(scope.mux) {
		if err := r.writeDocument(ctx, scope); err != nil {
			return false, err
		}
	}
	if scope.drain, err = r.gatherDrain(ctx, muxInDrain(scope.mux)); err != nil {
		return false, err
	}
	if len(scope.drain.WaitingFor) > 0 || render.Paused(scope.mux) {
		return false, nil
	}
	err = r.release(ctx, scope.mux, scope.mux.Status.Drain != nil)
	return err == nil, err
}

// object returns what a drain is about, nil if it is gone.
func (s *muxScope) object(backend, nested string) client.Object {
	if m := s.facts.Muxes[nested]; m != nil {
		return m
	}
	if b := s.facts.Backends[backend]; b != nil {
		return b
	}
	return nil
}

// wakeMember wakes the reconciler of what a drain is about.
func (r *muxReconciler) wakeMember(mux *v1alpha1.StorageMux, backend, nested string) {
	if nested != "" {
		r.muxes.wake(types.NamespacedName{Namespace: mux.Namespace, Name: nested})
		return
	}
	r.backends.wake(types.NamespacedName{Namespace: mux.Namespace, Name: backend})
}

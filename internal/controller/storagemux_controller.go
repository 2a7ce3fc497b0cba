package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/controller/status"
	"github.com/suaveplan/storagemux/internal/render"
)

// +kubebuilder:rbac:groups=storagemux.dev,resources=storagemuxes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storagemux.dev,resources=storagemuxes/status,verbs=update
// +kubebuilder:rbac:groups=storagemux.dev,resources=storagemuxes/finalizers,verbs=update

// muxReconciler makes the world look as a StorageMux says.
type muxReconciler struct {
	*shared
}

// muxScope is what one pass over one mux knows. Each phase adds to it.
type muxScope struct {
	mux    *v1alpha1.StorageMux
	stored *storedDocument
	// notOurs is set where the Secret with the name of the config Secret is
	// not of this mux.
	notOurs error
	pods    []corev1.Pod
	proxies []status.Proxy
	// above are the proxies of the muxes that contain this one.
	above  []status.Proxy
	facts  render.Facts
	result render.Result
	// children is why not all children are as they should be.
	children *render.Verdict
	// trouble is why there is no pod at all.
	trouble *render.Verdict
	// drain is nil while the mux is not being deleted.
	drain *status.Drain
	// again is after how long to look again although nothing wakes us.
	again time.Duration
}

// later asks for another pass after wait at the latest.
func (s *muxScope) later(wait time.Duration) {
	if s.again == 0 || wait < s.again {
		s.again = wait
	}
}

// Reconcile implements reconcile.Reconciler.
func (r *muxReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	mux := &v1alpha1.StorageMux{}
	if err := r.client.Get(ctx, request.NamespacedName, mux); err != nil {
		if apierrors.IsNotFound(err) {
			r.forgetMux(request.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read StorageMux %s: %w", request.NamespacedName, err)
	}
	key := objectKey{v1alpha1.KindStorageMux, request.NamespacedName}
	if r.writes.ahead(key, mux, r.now()) {
		return reconcile.Result{RequeueAfter: cacheCatchUp}, nil
	}
	scope := &muxScope{mux: mux}
	phases := r.phases
	if mux.DeletionTimestamp != nil {
		phases = r.phasesOfDeletion
		if !controllerutil.ContainsFinalizer(mux, v1alpha1.FinalizerDrain) {
			// The children go by their owner references.
			return reconcile.Result{}, nil
		}
	}
	gone, failed := phases(ctx, scope)
	if gone {
		return reconcile.Result{}, nil
	}
	if err := r.writeMuxStatus(ctx, scope, failed); err != nil {
		failed = errors.Join(failed, err)
	}
	if mux.DeletionTimestamp == nil {
		r.wakeDraining(ctx, scope)
	}
	if conflict(failed) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}
	if failed != nil {
		return reconcile.Result{}, failed
	}
	return reconcile.Result{RequeueAfter: scope.again}, nil
}

// phases are the steps of a pass, each on what the ones before it found. An
// error ends the pass; it is retried.
func (r *muxReconciler) phases(ctx context.Context, scope *muxScope) (gone bool, err error) {
	steps := []func(context.Context, *muxScope) error{r.hold, r.look}
	if !render.Paused(scope.mux) {
		steps = append(steps, r.writeDocument, r.applyChildren, r.removeOverdue)
	}
	for _, step := range steps {
		if err := step(ctx, scope); err != nil {
			return false, err
		}
	}
	return false, nil
}

// look gathers the facts and decides what is to be done.
func (r *muxReconciler) look(ctx context.Context, scope *muxScope) error {
	for _, step := range []func(context.Context, *muxScope) error{r.gather, r.gatherAbove, r.decide, r.gatherTrouble} {
		if err := step(ctx, scope); err != nil {
			return err
		}
	}
	r.fleet.Sync(client.ObjectKeyFromObject(scope.mux), scope.stored.access(), fleetTargets(scope.mux, scope.pods))
	return nil
}

// conflictPause is how long to wait for the cache after a conflict.
const conflictPause = 100 * time.Millisecond

// conflict reports whether the only thing that failed is that somebody was
// faster, which the next pass settles.
func conflict(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

func (r *muxReconciler) forgetMux(key types.NamespacedName) {
	r.fleet.Sync(key, (*storedDocument)(nil).access(), nil)
	r.documents.forget(key)
	r.applied.forget(key)
	r.endUpgrade(key)
	r.budget.forget(objectKey{v1alpha1.KindStorageMux, key})
	r.writes.forget(objectKey{v1alpha1.KindStorageMux, key})
}

// wakeDraining lets what is being deleted look again: those
// of this mux at once, and others in a while, since a pod that is gone may have
// held one that the mux does not even know any more.
func (r *muxReconciler) wakeDraining(ctx context.Context, scope *muxScope) {
	wake := func(w *waker, name string, ours bool) {
		wait := time.Second
		if ours {
			wait = 0
		}
		w.wakeAfter(types.NamespacedName{Namespace: scope.mux.Namespace, Name: name}, wait)
	}
	backends, err := r.graph.backendsWith(ctx, scope.mux.Namespace, indexDeleting, "true")
	if err != nil {
		return // the cache ends with the process
	}
	for _, name := range backends {
		wake(r.backends, name, scope.facts.Backends[name] != nil)
	}
	muxes, err := r.graph.deleting(ctx, scope.mux.Namespace)
	if err != nil {
		return
	}
	for _, name := range muxes {
		wake(r.muxes, name, scope.facts.Muxes[name] != nil)
	}
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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
	facts   render.Facts
	result  render.Result
	// children is why not all children are as they should be.
	children *render.Verdict
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
	if mux.DeletionTimestamp != nil {
		// The children go by their owner references, and backends that
		// drain no longer wait for this mux.
		return reconcile.Result{}, nil
	}
	scope := &muxScope{mux: mux}
	failed := r.phases(ctx, scope)
	if err := r.writeMuxStatus(ctx, scope, failed); err != nil {
		failed = errors.Join(failed, err)
	}
	r.wakeDraining(ctx, scope)
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
func (r *muxReconciler) phases(ctx context.Context, scope *muxScope) error {
	if err := r.gather(ctx, scope); err != nil {
		return err
	}
	r.fleet.Sync(types.NamespacedName{Namespace: scope.mux.Namespace, Name: scope.mux.Name},
		scope.stored.access(), fleetTargets(scope.mux, scope.pods))
	if err := r.decide(ctx, scope); err != nil {
		return err
	}
	if paused(scope.mux) {
		return nil
	}
	for _, phase := range []func(context.Context, *muxScope) error{
		r.writeDocument, r.applyChildren, r.removeOverdue,
	} {
		if err := phase(ctx, scope); err != nil {
			return err
		}
	}
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
	r.budget.forget(objectKey{v1alpha1.KindStorageMux, key})
}

// wakeDraining lets the StorageBackends that are being deleted look again: those
// of this mux at once, and others in a while, since a pod that is gone may have
// held one that the mux does not even know any more.
func (r *muxReconciler) wakeDraining(ctx context.Context, scope *muxScope) {
	names, err := r.graph.backendsWith(ctx, scope.mux.Namespace, indexDeleting, "true")
	if err != nil {
		return // the cache ends with the process
	}
	for _, name := range names {
		wait := time.Second
		if _, ours := scope.facts.Backends[name]; ours {
			wait = 0
		}
		r.backends.wakeAfter(types.NamespacedName{Namespace: scope.mux.Namespace, Name: name}, wait)
	}
}

func paused(o interface{ GetAnnotations() map[string]string }) bool {
	return o.GetAnnotations()[v1alpha1.AnnotationPaused] == v1alpha1.AnnotationTrue
}

package controller

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/controller/status"
	"github.com/suaveplan/storagemux/internal/render"
)

// +kubebuilder:rbac:groups=storagemux.dev,resources=storagebackends,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=storagemux.dev,resources=storagebackends/status,verbs=update

// backendReconciler says how a StorageBackend is, and holds one that is being
// deleted until no proxy uses it. It changes nothing else: letting go is each
// mux's own work.
type backendReconciler struct {
	*shared
}

// backendScope is what one pass over one StorageBackend knows.
type backendScope struct {
	backend *v1alpha1.StorageBackend
	users   []string
	proxies []status.Proxy
	facts   render.Facts
	// drain is nil while the backend is not being deleted.
	drain *status.Drain
	again time.Duration
}

// Reconcile implements reconcile.Reconciler.
func (r *backendReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key := objectKey{v1alpha1.KindStorageBackend, request.NamespacedName}
	defer r.turns.end(key)
	backend := &v1alpha1.StorageBackend{}
	if err := r.client.Get(ctx, request.NamespacedName, backend); err != nil {
		if apierrors.IsNotFound(err) {
			r.budget.forget(key)
			r.writes.forget(key)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read StorageBackend %s: %w", request.NamespacedName, err)
	}
	if r.writes.ahead(key, backend, r.now()) {
		return reconcile.Result{RequeueAfter: cacheCatchUp}, nil
	}
	scope := &backendScope{backend: backend}
	gone, failed := r.phases(ctx, scope)
	if gone {
		return reconcile.Result{}, nil
	}
	if failed == nil {
		failed = r.writeBackendStatus(ctx, scope)
	}
	switch {
	case conflict(failed):
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	case apierrors.IsNotFound(failed):
		return reconcile.Result{}, nil // deleted meanwhile
	case failed != nil:
		return reconcile.Result{}, failed
	}
	return reconcile.Result{RequeueAfter: scope.again}, nil
}

// phases reports whether the backend is gone.
func (r *backendReconciler) phases(ctx context.Context, scope *backendScope) (gone bool, err error) {
	if b := scope.backend; b.DeletionTimestamp == nil && !render.Paused(b) {
		// Before any mux renders it.
		if err := r.addFinalizer(ctx, b); err != nil {
			return false, err
		}
	}
	if err := r.gatherBackend(ctx, scope); err != nil {
		return false, err
	}
	if scope.backend.DeletionTimestamp == nil {
		return false, nil
	}
	if !controllerutil.ContainsFinalizer(scope.backend, v1alpha1.FinalizerDrain) {
		return true, nil // what still holds it is not ours
	}
	if scope.drain, err = r.gatherDrain(ctx, backendInDrain(scope.backend)); err != nil {
		return false, err
	}
	if len(scope.drain.WaitingFor) > 0 || render.Paused(scope.backend) {
		return false, nil
	}
	err = r.release(ctx, scope.backend, scope.backend.Status.Drain != nil)
	return err == nil, err
}

// gatherBackend reads what the status of a backend depends on.
func (r *backendReconciler) gatherBackend(ctx context.Context, scope *backendScope) error {
	b := scope.backend
	scope.facts = render.Facts{
		Backends: map[string]*v1alpha1.StorageBackend{b.Name: b},
		Secrets:  map[string]render.Secret{}, ConfigMaps: map[string]map[string]string{}, Claims: map[string]render.Claim{},
	}
	if err := r.readReferences(ctx, b.Namespace, backendRefs(b), &scope.facts); err != nil {
		return err
	}
	if err := r.readCandidates(ctx, scope); err != nil {
		return err
	}
	users, err := r.graph.users(ctx, client.ObjectKeyFromObject(b))
	if err != nil {
		return err
	}
	// A mux that does not list it any more, and whose proxies still have it,
	// uses it too.
	scope.users = union(users, r.fleet.Holders(string(b.UID)))
	for _, mux := range scope.users {
		key := types.NamespacedName{Namespace: b.Namespace, Name: mux}
		pods, err := cachedPods(ctx, r.client, key)
		if err != nil {
			return err
		}
		scope.proxies = append(scope.proxies, r.proxiesOf(key, pods)...)
	}
	return nil
}

// readCandidates reads what the candidates of a fallback backend name.
func (r *backendReconciler) readCandidates(ctx context.Context, scope *backendScope) error {
	namespace := scope.backend.Namespace
	backends, muxes, buckets := render.References(scope.backend)
	for _, bucket := range buckets {
		names, err := r.graph.backendsWith(ctx, namespace, indexBucket, bucket)
		if err != nil {
			return err
		}
		backends = append(backends, names...)
	}
	for _, name := range backends {
		found, err := r.graph.backendNamed(ctx, namespace, name)
		if err != nil {
			return err
		}
		if found != nil {
			scope.facts.Backends[name] = found
		}
	}
	scope.facts.Muxes = map[string]*v1alpha1.StorageMux{}
	for _, name := range muxes {
		m := &v1alpha1.StorageMux{}
		switch err := r.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, m); {
		case err == nil:
			scope.facts.Muxes[name] = m
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("read StorageMux %s/%s: %w", namespace, name, err)
		}
	}
	return nil
}

// writeBackendStatus is the last step of every pass: one write, if something
// changed.
func (r *backendReconciler) writeBackendStatus(ctx context.Context, scope *backendScope) error {
	now := r.now()
	before := &scope.backend.Status
	after := status.Backend(status.BackendFacts{
		Backend:  scope.backend,
		Accepted: render.AcceptBackend(scope.backend, false), ResolvedRefs: render.ResolveBackend(scope.backend, scope.facts),
		UsedBy: scope.users, Proxies: scope.proxies, Drain: scope.drain, Now: now,
	})
	key := objectKey{v1alpha1.KindStorageBackend, client.ObjectKeyFromObject(scope.backend)}
	difference := status.CompareBackend(before, &after)
	if difference == status.Same {
		return nil
	}
	if !r.turns.take(key) {
		return nil
	}
	if difference == status.Figures {
		if wait := r.budget.take(key, now); wait > 0 {
			scope.again = wait
			return nil
		}
	} else {
		r.budget.wrote(key, now)
	}
	updated := scope.backend.DeepCopy()
	updated.Status = after
	if err := r.client.Status().Update(ctx, updated, fieldOwner); err != nil {
		return fmt.Errorf("write the status of StorageBackend %s: %w", key.NamespacedName, err)
	}
	r.writes.wrote(key, updated, now)
	r.tellConditions(updated, before.Conditions, after.Conditions, backendTransitions)
	r.tellBlocked(updated, before.Conditions, after.Conditions)
	return nil
}

var backendTransitions = []transition{
	{v1alpha1.ConditionAccepted, metav1.ConditionFalse, warning, ""},
	{v1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, warning, ""},
	{v1alpha1.ConditionResolvedRefs, metav1.ConditionTrue, normal, ""},
	// That a store is down or up again is told by the proxies' own events.
	{v1alpha1.ConditionReachable, metav1.ConditionFalse, warning, v1alpha1.ReasonBadCredentials},
}

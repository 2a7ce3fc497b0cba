package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/render"
)

// upgrades lets only a few muxes at a time have their proxies replaced because
// the operator brings another build of them: a build that does not start stops
// there.
type upgrades struct {
	limit int

	mu sync.Mutex
	// moving are the muxes whose proxies are being replaced; nil until they
	// have been looked for.
	moving map[types.NamespacedName]bool
	// waiting are those that asked in vain, in that order.
	waiting []types.NamespacedName
}

// begin reports whether the proxies of mux may be replaced now. find is asked
// once, for the muxes that an earlier leader has begun with.
func (u *upgrades) begin(mux types.NamespacedName, find func() ([]types.NamespacedName, error)) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.moving == nil {
		begun, err := find()
		if err != nil {
			return false, err
		}
		u.moving = map[types.NamespacedName]bool{}
		for _, one := range begun {
			u.moving[one] = true
		}
	}
	if !u.moving[mux] && len(u.moving) >= u.limit {
		if !slices.Contains(u.waiting, mux) {
			u.waiting = append(u.waiting, mux)
		}
		return false, nil
	}
	u.moving[mux] = true
	u.waiting = slices.DeleteFunc(u.waiting, func(one types.NamespacedName) bool { return one == mux })
	return true, nil
}

// end takes mux, whose proxies have been replaced or are gone, from those that
// are moving, and returns the muxes that may ask again.
func (u *upgrades) end(mux types.NamespacedName) []types.NamespacedName {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.waiting = slices.DeleteFunc(u.waiting, func(one types.NamespacedName) bool { return one == mux })
	delete(u.moving, mux)
	room := min(len(u.waiting), max(0, u.limit-len(u.moving)))
	next := slices.Clone(u.waiting[:room])
	u.waiting = u.waiting[room:]
	return next
}

// endUpgrade notes that the proxies of mux are no longer being replaced.
func (s *shared) endUpgrade(mux types.NamespacedName) {
	for _, next := range s.upgrades.end(mux) {
		s.muxes.wake(next)
	}
}

// deploymentMeta returns the metadata of a mux's Deployment, nil without one.
func (s *shared) deploymentMeta(ctx context.Context, mux types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	meta := metadataOf(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	key := types.NamespacedName{Namespace: mux.Namespace, Name: render.ChildName(mux.Name)}
	switch err := s.client.Get(ctx, key, meta); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("look up Deployment %s: %w", key, err)
	}
	return meta, nil
}

// mayReplaceProxies reports whether the Deployment may be applied. One that is
// of another build waits for its turn, with the number of replicas that is
// wanted.
func (r *muxReconciler) mayReplaceProxies(ctx context.Context, scope *muxScope) (bool, error) {
	key := client.ObjectKeyFromObject(scope.mux)
	meta, err := r.deploymentMeta(ctx, key)
	switch {
	case err != nil:
		return false, err
	case meta == nil || ownership(metav1.GetControllerOf(meta), scope.mux) != nil:
		return true, nil
	case meta.Annotations[v1alpha1.AnnotationProxyBuild] == r.render.ProxyBuild:
		return true, nil
	}
	begun, err := r.upgrades.begin(key, func() ([]types.NamespacedName, error) { return r.upgradesBegun(ctx) })
	if err != nil || begun {
		return begun, err
	}
	log.FromContext(ctx).V(1).Info("the proxies wait for their turn to be replaced")
	return false, r.scaleOnly(ctx, scope)
}

// replaced reports whether all proxies of a mux are of a build and ready.
func replaced(mux *v1alpha1.StorageMux, pods []corev1.Pod, build string) bool {
	var done int32
	for i := range pods {
		if pods[i].DeletionTimestamp != nil {
			continue
		}
		if pods[i].Annotations[v1alpha1.AnnotationProxyBuild] != build || !ready(&pods[i]) {
			return false
		}
		done++
	}
	return done >= render.Replicas(mux)
}

// upgradesBegun are the muxes whose Deployment is of this build, and whose pods
// are not all yet.
func (s *shared) upgradesBegun(ctx context.Context) ([]types.NamespacedName, error) {
	muxes := &v1alpha1.StorageMuxList{}
	if err := s.client.List(ctx, muxes); err != nil {
		return nil, fmt.Errorf("list the StorageMuxes: %w", err)
	}
	var begun []types.NamespacedName
	for i := range muxes.Items {
		key := client.ObjectKeyFromObject(&muxes.Items[i])
		meta, err := s.deploymentMeta(ctx, key)
		if err != nil {
			return nil, err
		}
		if meta == nil || meta.Annotations[v1alpha1.AnnotationProxyBuild] != s.render.ProxyBuild {
			continue
		}
		pods, err := cachedPods(ctx, s.client, key)
		if err != nil {
			return nil, err
		}
		if !replaced(&muxes.Items[i], pods, s.render.ProxyBuild) {
			begun = append(begun, key)
		}
	}
	return begun, nil
}

// scaleOnly gives a Deployment the number of replicas that is wanted, and
// nothing else.
func (r *muxReconciler) scaleOnly(ctx context.Context, scope *muxScope) error {
	key := types.NamespacedName{Namespace: scope.mux.Namespace, Name: render.ChildName(scope.mux.Name)}
	deployment := &appsv1.Deployment{}
	if err := r.live.Get(ctx, key, deployment); err != nil {
		return fmt.Errorf("read Deployment %s: %w", key, err)
	}
	wanted := render.Replicas(scope.mux)
	if deployment.Spec.Replicas != nil && *deployment.Spec.Replicas == wanted {
		return nil
	}
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = &wanted
	if err := r.client.Patch(ctx, deployment, client.MergeFrom(before), fieldOwner); err != nil {
		return fmt.Errorf("scale Deployment %s: %w", key, err)
	}
	return nil
}

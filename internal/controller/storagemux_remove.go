package controller

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/internal/render"
)

// +kubebuilder:rbac:groups="",resources=services;serviceaccounts;secrets,verbs=delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=delete
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=delete

// leftover is an object that a mux of proxy type None does not have.
type leftover struct {
	kind schema.GroupVersionKind
	name func(mux string) string
}

var (
	// What makes proxies and leads to them goes first.
	leftoverProxies = []leftover{
		{corev1.SchemeGroupVersion.WithKind("Service"), render.ChildName},
		{policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), render.ChildName},
		{appsv1.SchemeGroupVersion.WithKind("Deployment"), render.ChildName},
	}
	// What proxies need stays until the last of them has ended: they finish
	// requests, and drains wait for them.
	leftoverMeans = []leftover{
		{rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), render.ChildName},
		{rbacv1.SchemeGroupVersion.WithKind("Role"), render.ChildName},
		{corev1.SchemeGroupVersion.WithKind("ServiceAccount"), render.ChildName},
		{networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"), render.ChildName},
		{corev1.SchemeGroupVersion.WithKind("Secret"), render.ConnectionSecretName},
		{corev1.SchemeGroupVersion.WithKind("Secret"), render.ConfigSecretName},
	}
)

// removeChildren removes what is left of the time when the mux had proxies.
func (r *muxReconciler) removeChildren(ctx context.Context, scope *muxScope) error {
	r.applied.forget(client.ObjectKeyFromObject(scope.mux))
	r.endUpgrade(client.ObjectKeyFromObject(scope.mux))
	left := leftoverProxies
	if len(scope.pods) == 0 {
		left = append(left[:len(left):len(left)], leftoverMeans...)
	}
	var failed error
	for _, one := range left {
		failed = errors.Join(failed, r.removeChild(ctx, scope, one))
	}
	return failed
}

func (r *muxReconciler) removeChild(ctx context.Context, scope *muxScope, one leftover) error {
	key := types.NamespacedName{Namespace: scope.mux.Namespace, Name: one.name(scope.mux.Name)}
	existing := metadataOf(one.kind)
	err := r.client.Get(ctx, key, existing)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("look up %s %s: %w", one.kind.Kind, key, err)
	case existing.DeletionTimestamp != nil || ownership(metav1.GetControllerOf(existing), scope.mux) != nil:
		return nil
	}
	err = r.client.Delete(ctx, existing, client.Preconditions{UID: ptr.To(existing.UID)},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s: %w", one.kind.Kind, key, err)
	}
	return nil
}

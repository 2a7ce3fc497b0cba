package controller

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// +kubebuilder:rbac:groups=storagemux.dev,resources=storagemuxes,verbs=patch

// ReleaseFinalizers removes the operator's finalizer from every object in the
// given namespaces, or in all, so that nothing waits for an operator that is to
// be uninstalled. tell is called with each object that was freed. No operator
// must run meanwhile: it would add the finalizers again.
func ReleaseFinalizers(ctx context.Context, config *rest.Config, namespaces []string, tell func(kind, namespace, name string)) error {
	c, err := client.New(config, client.Options{Scheme: NewScheme()})
	if err != nil {
		return fmt.Errorf("make a client for the API server: %w", err)
	}
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var failed error
	for _, namespace := range namespaces {
		backends, muxes := &v1alpha1.StorageBackendList{}, &v1alpha1.StorageMuxList{}
		for _, list := range []client.ObjectList{backends, muxes} {
			if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return fmt.Errorf("list %T in namespace %q: %w", list, namespace, err)
			}
		}
		for i := range backends.Items {
			failed = errors.Join(failed, releaseOne(ctx, c, &backends.Items[i], v1alpha1.KindStorageBackend, tell))
		}
		for i := range muxes.Items {
			failed = errors.Join(failed, releaseOne(ctx, c, &muxes.Items[i], v1alpha1.KindStorageMux, tell))
		}
	}
	return failed
}

func releaseOne(ctx context.Context, c client.Client, o client.Object, kind string, tell func(kind, namespace, name string)) error {
	if !controllerutil.ContainsFinalizer(o, v1alpha1.FinalizerDrain) {
		return nil
	}
	key := client.ObjectKeyFromObject(o)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.Get(ctx, key, o); err != nil {
			return err
		}
		before := o.DeepCopyObject().(client.Object)
		controllerutil.RemoveFinalizer(o, v1alpha1.FinalizerDrain)
		return c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldOwner)
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer from %s %s: %w", kind, key, err)
	}
	tell(kind, key.Namespace, key.Name)
	return nil
}

package controller

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// addFinalizer adds the finalizer to an object that is not being deleted.
func (s *shared) addFinalizer(ctx context.Context, object client.Object) error {
	if controllerutil.ContainsFinalizer(object, v1alpha1.FinalizerDrain) {
		return nil
	}
	before := object.DeepCopyObject().(client.Object)
	controllerutil.AddFinalizer(object, v1alpha1.FinalizerDrain)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, object, patch, fieldOwner); err != nil {
		return fmt.Errorf("add the finalizer to %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// release removes the finalizer, and tells so if anybody had to wait for it.
func (s *shared) release(ctx context.Context, object client.Object, waited bool) error {
	after := object.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(after, v1alpha1.FinalizerDrain)
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	if err := s.client.Patch(ctx, after, patch, fieldOwner); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer from %T %s: %w", object, client.ObjectKeyFromObject(object), err)
	}
	if waited {
		s.events.one(object, normal, reasonDrainCompleted, actionDrain, "no proxy uses it any more")
	}
	return nil
}

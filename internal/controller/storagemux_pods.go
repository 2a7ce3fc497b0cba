package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=delete

// overdueGraceSeconds is the time to end of a pod that did not let go of a
// member in time: its own grace period is as long as the longest transfer.
const overdueGraceSeconds = 30

// removeOverdue deletes the pods that still hold a member past its deadline.
func (r *muxReconciler) removeOverdue(ctx context.Context, scope *muxScope) error {
	var failed error
	for _, d := range scope.result.Drains {
		var forced []string
		for i := range scope.pods {
			pod := &scope.pods[i]
			if !slices.Contains(d.Overdue, pod.Name) {
				continue
			}
			if grace := pod.DeletionGracePeriodSeconds; pod.DeletionTimestamp != nil && grace != nil && *grace <= overdueGraceSeconds {
				continue
			}
			err := r.client.Delete(ctx, pod, client.GracePeriodSeconds(overdueGraceSeconds), client.Preconditions{UID: &pod.UID})
			switch {
			case err == nil:
				forced = append(forced, pod.Name)
			case !apierrors.IsNotFound(err) && !apierrors.IsConflict(err):
				failed = errors.Join(failed, fmt.Errorf("delete pod %s: %w", pod.Name, err))
			}
		}
		if len(forced) > 0 {
			log.FromContext(ctx).Info("deleted pods that did not let go of a member in time", "member", d.Member, "pods", forced)
			r.events.both(scope.mux, scope.object(d.Backend, d.Nested), warning, reasonDrainForced,
				"the deadline for member %s is past; deleted the pods that still held it: %s", d.Member, joined(forced))
		}
	}
	return failed
}

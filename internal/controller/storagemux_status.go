package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/controller/status"
	"github.com/suaveplan/storagemux/internal/render"
)

// writeMuxStatus is the last step of every pass: one write, if something
// changed. A pass that failed before it had decided leaves status alone.
func (r *muxReconciler) writeMuxStatus(ctx context.Context, scope *muxScope, failed error) error {
	if failed != nil && scope.result.Accepted.Reason == "" {
		return nil
	}
	now := r.now()
	before := &scope.mux.Status
	after := status.Mux(status.MuxFacts{
		Mux: scope.mux, Accepted: scope.result.Accepted, ResolvedRefs: scope.result.ResolvedRefs,
		Stored: scope.stored.wire(), Shape: scope.result.Shape,
		Children: scope.children, TooOld: scope.result.TooOld, Trouble: scope.trouble,
		Proxies: scope.proxies, Above: scope.above, Drain: scope.drain,
		Paused: render.Paused(scope.mux), Now: now,
	})
	key := objectKey{v1alpha1.KindStorageMux, client.ObjectKeyFromObject(scope.mux)}
	switch status.CompareMux(before, &after) {
	case status.Same:
		return nil
	case status.Figures:
		if wait := r.budget.take(key, now); wait > 0 {
			scope.later(wait)
			return nil
		}
	default:
		if wait := scope.stored.fresh(now); wait > 0 && onlyPending(before, &after) {
			scope.later(wait)
			return nil
		}
		r.budget.wrote(key, now)
	}
	updated := scope.mux.DeepCopy()
	updated.Status = after
	if err := r.client.Status().Update(ctx, updated, fieldOwner); err != nil {
		if scope.mux.DeletionTimestamp != nil && apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("write the status of StorageMux %s: %w", key.NamespacedName, err)
	}
	r.writes.wrote(key, updated, now)
	r.tellConditions(updated, before.Conditions, after.Conditions, muxTransitions)
	r.tellBlocked(updated, before.Conditions, after.Conditions)
	return nil
}

// onlyPending reports whether a mux that is programmed would be said not to be,
// for no other reason than that proxies have not taken up the newest document.
func onlyPending(before, after *v1alpha1.StorageMuxStatus) bool {
	was := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionProgrammed)
	now := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionProgrammed)
	return was != nil && was.Status == metav1.ConditionTrue && now != nil && now.Reason == v1alpha1.ReasonPending
}

// transition is a change of a condition that is worth an event.
type transition struct {
	condition string
	status    metav1.ConditionStatus
	kind      string
	// reason narrows it down, where others are told in another way.
	reason string
}

var muxTransitions = []transition{
	{v1alpha1.ConditionAccepted, metav1.ConditionFalse, warning, ""},
	{v1alpha1.ConditionResolvedRefs, metav1.ConditionFalse, warning, ""},
	{v1alpha1.ConditionResolvedRefs, metav1.ConditionTrue, normal, ""},
	{v1alpha1.ConditionProgrammed, metav1.ConditionTrue, normal, ""},
	{v1alpha1.ConditionReady, metav1.ConditionTrue, normal, ""},
	{v1alpha1.ConditionReady, metav1.ConditionFalse, warning, ""},
	{v1alpha1.ConditionStalled, metav1.ConditionTrue, warning, ""},
}

// tellConditions records the conditions that have come into a state, or into
// one with another reason.
func (r *shared) tellConditions(object client.Object, before, after []metav1.Condition, transitions []transition) {
	for _, t := range transitions {
		now := meta.FindStatusCondition(after, t.condition)
		if now == nil || now.Status != t.status || t.reason != "" && t.reason != now.Reason {
			continue
		}
		was := meta.FindStatusCondition(before, t.condition)
		// Before anything was said, only what is wrong with the spec is news.
		if was == nil && (t.condition == v1alpha1.ConditionReady || t.kind == normal && t.condition == v1alpha1.ConditionResolvedRefs) {
			continue
		}
		if was == nil || was.Status != now.Status || was.Reason != now.Reason {
			r.events.one(object, t.kind, now.Reason, t.condition, "%s", now.Message)
		}
	}
}

// tellBlocked records that a drain has come to a stop, and why.
func (r *shared) tellBlocked(object client.Object, before, after []metav1.Condition) {
	now := meta.FindStatusCondition(after, v1alpha1.ConditionDraining)
	was := meta.FindStatusCondition(before, v1alpha1.ConditionDraining)
	if now == nil || now.Reason != v1alpha1.ReasonDrainBlocked || was != nil && was.Reason == now.Reason {
		return
	}
	r.events.one(object, warning, reasonDrainBlocked, actionDrain, "%s", now.Message)
}

package status

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// Drain is how far the removal of an object from all muxes is.
type Drain struct {
	// Blocked: at least one mux does not grant it.
	Blocked bool
	Message string
	// StartedAt and Deadline are zero until a mux granted it.
	StartedAt, Deadline time.Time
	// WaitingFor names muxes and pods as storagemux/NAME and pod/NAME.
	WaitingFor []string
}

// drainStatus puts a drain into the form of a status; before is what it was.
func drainStatus(d *Drain, before *v1alpha1.DrainStatus) *v1alpha1.DrainStatus {
	if d == nil {
		return nil
	}
	waiting := slices.Compact(slices.Sorted(slices.Values(d.WaitingFor)))
	next := &v1alpha1.DrainStatus{
		StartedAt:  timeOrNil(d.StartedAt),
		Deadline:   timeOrNil(d.Deadline),
		WaitingFor: waiting[:min(len(waiting), v1alpha1.MaxStatusWaitingFor)],
	}
	if before != nil && before.StartedAt != nil && next.Deadline != nil {
		next.StartedAt = before.StartedAt
	}
	return next
}

// draining is the condition Draining of an object that is being deleted.
func draining(d *Drain) *verdict {
	if d == nil {
		return nil
	}
	v := isTrue(v1alpha1.ReasonDrainInProgress, "%s", d.Message)
	if d.Blocked {
		v.reason = v1alpha1.ReasonDrainBlocked
	}
	return &v
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	stamp := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &stamp
}

package status

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// BackendFacts are all that the status of a StorageBackend depends on.
type BackendFacts struct {
	// Backend carries the status as it was before.
	Backend                *v1alpha1.StorageBackend
	Accepted, ResolvedRefs render.Verdict
	// UsedBy are the names of the muxes that contain it at any depth.
	UsedBy []string
	// Proxies are those of these muxes.
	Proxies []Proxy
	// Drain is nil while the backend is not being deleted.
	Drain *Drain
	Now   time.Time
}

// Backend returns the status of a StorageBackend.
func Backend(f BackendFacts) v1alpha1.StorageBackendStatus {
	b := backendBuilder{BackendFacts: f, replicas: replicas(f.Proxies), next: *f.Backend.Status.DeepCopy()}
	b.next.ObservedGeneration = f.Backend.Generation
	b.next.Type = f.Backend.Spec.Type()
	b.usedBy()
	b.observe()
	b.next.Drain = drainStatus(f.Drain, f.Backend.Status.Drain)
	b.conditions()
	if figuresMoved(backendFigures(&f.Backend.Status), backendFigures(&b.next)) {
		now := metav1.NewTime(f.Now.UTC().Truncate(time.Second))
		b.next.StatsTime = &now
	}
	return b.next
}

type backendBuilder struct {
	BackendFacts
	replicas []Proxy
	// told are the reports of this backend of the proxies that told lately.
	told []*muxconfig.MemberReport
	next v1alpha1.StorageBackendStatus
}

func (b *backendBuilder) usedBy() {
	names := slices.Sorted(slices.Values(b.UsedBy))
	b.next.UsedByCount = int32(len(names))
	b.next.UsedBy = nil
	for _, name := range names[:min(len(names), v1alpha1.MaxStatusUsedBy)] {
		b.next.UsedBy = append(b.next.UsedBy, v1alpha1.MuxReference{Name: name})
	}
}

// settling reports whether to keep what the status says of proxies.
func (b *backendBuilder) settling() bool {
	return b.Backend.Status.ObservedGeneration != 0 && unsettled(b.replicas)
}

func (b *backendBuilder) observe() {
	if b.settling() {
		return
	}
	seen := make([][]*muxconfig.MemberReport, len(b.replicas))
	for i, p := range b.replicas {
		if !p.heard() {
			continue
		}
		for j := range p.Report.Members {
			if m := &p.Report.Members[j]; m.UID == string(b.Backend.UID) {
				seen[i] = append(seen[i], m)
			}
		}
	}
	b.told = slices.Concat(seen...)
	b.next.Observation = observation(seen)
	if weakest := capabilities(b.told); weakest != nil {
		b.next.Capabilities = weakest
	}
}

func (b *backendBuilder) conditions() {
	set := conditionSet{&b.next.Conditions, b.Backend.Generation, b.Now}
	accepted := fromRender(b.Accepted)
	set.set(v1alpha1.ConditionAccepted, accepted)
	set.set(v1alpha1.ConditionResolvedRefs, fromRender(b.ResolvedRefs))
	if !b.settling() || !set.keep(v1alpha1.ConditionReachable) {
		set.set(v1alpha1.ConditionReachable, b.reachable())
	}
	if !b.settling() || !set.keep(v1alpha1.ConditionReady) {
		set.set(v1alpha1.ConditionReady, b.ready())
	}
	set.setWhileTrue(v1alpha1.ConditionDraining, draining(b.Drain))
	set.setWhileTrue(v1alpha1.ConditionStalled, stalled(accepted))
}

// reachable is False as soon as one proxy cannot use the store.
func (b *backendBuilder) reachable() verdict {
	switch {
	case len(b.UsedBy) == 0 && len(b.told) == 0:
		return isUnknown(v1alpha1.ReasonNotUsed, "no mux uses it")
	case len(b.told) == 0:
		return isUnknown(v1alpha1.ReasonNoReport, "no proxy has told lately")
	}
	for _, m := range b.told {
		if m.Refused != nil {
			return isFalse(storeReason(m.Refused.Code), "the store refuses the newest credentials (%s), those before are still in use", m.Refused.Code)
		}
	}
	replicas := b.next.Replicas
	if replicas.Down == 0 {
		return isTrue(v1alpha1.ReasonReachable, "the proxies reach the store")
	}
	reason, why := v1alpha1.ReasonUnreachable, ""
	if err := b.next.LastError; err != nil {
		reason, why = storeReason(err.Code), " ("+err.Code+", see status.lastError)"
	}
	return isFalse(reason, "%d of %d proxies cannot use the store%s", replicas.Down, replicas.Up+replicas.Down+replicas.Draining, why)
}

func (b *backendBuilder) ready() verdict {
	replicas := b.next.Replicas
	switch {
	case replicas.Up+replicas.Draining > 0:
		return isTrue(v1alpha1.ReasonServing, "it is used by at least one proxy")
	case !b.Accepted.OK:
		return isFalse(v1alpha1.ReasonNotAccepted, "%s", b.Accepted.Message)
	case !b.ResolvedRefs.OK:
		return isFalse(v1alpha1.ReasonRefsNotResolved, "%s", b.ResolvedRefs.Message)
	case replicas.Down > 0:
		v := b.reachable()
		return isFalse(v.reason, "%s", v.message)
	case len(b.UsedBy) == 0:
		return isTrue(v1alpha1.ReasonNotUsed, "no mux uses it")
	default:
		return isUnknown(v1alpha1.ReasonNoReport, "no proxy has told lately")
	}
}

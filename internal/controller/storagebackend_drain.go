package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/controller/status"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// gatherDrain asks every mux of the namespace how far it is with letting go of
// the backend. Muxes, documents and pods are read live: what the cache does not
// know yet may still hold it.
func (r *backendReconciler) gatherDrain(ctx context.Context, scope *backendScope) error {
	b := scope.backend
	muxes := &v1alpha1.StorageMuxList{}
	if err := r.live.List(ctx, muxes, client.InNamespace(b.Namespace)); err != nil {
		return fmt.Errorf("list the StorageMuxes of namespace %s: %w", b.Namespace, err)
	}
	documents, err := r.documents.loadLive(ctx, b.Namespace, muxes.Items)
	if err != nil {
		return err
	}
	pods, err := livePods(ctx, r.live, b.Namespace, "")
	if err != nil {
		return err
	}
	scope.drain = &status.Drain{}
	var blocked, busy []string
	for i := range muxes.Items {
		mux := &muxes.Items[i]
		if mux.DeletionTimestamp != nil {
			continue // its proxies go with it
		}
		proxies := proxiesOf(r.fleet, client.ObjectKeyFromObject(mux), pods[mux.Name])
		hold := holdOf(mux, b, documents[mux.Name].wire(), proxies)
		if !hold.any() {
			continue
		}
		if err := r.addHold(ctx, scope.drain, mux, b, hold, &blocked, &busy); err != nil {
			return err
		}
	}
	slices.Sort(blocked)
	slices.Sort(busy)
	scope.drain.Blocked = len(blocked) > 0
	scope.drain.Message = strings.Join(append(blocked, busy...), "; ")
	return nil
}

// hold is what keeps a backend in one mux.
type hold struct {
	// document: the stored document has it, or the spec lists it and the
	// stored document does not yet say that it was let go.
	document bool
	// pods have not acknowledged the document that lets it go.
	pods []string
}

func (h hold) any() bool { return h.document || len(h.pods) > 0 }

// holdOf judges one mux. Without a document there are no proxies to wait for.
func holdOf(mux *v1alpha1.StorageMux, b *v1alpha1.StorageBackend, doc *muxconfig.Document, proxies []status.Proxy) hold {
	if doc == nil {
		return hold{}
	}
	uid := string(b.UID)
	listed := slices.Contains(targets(mux, v1alpha1.MemberKindStorageBackend), b.Name)
	held := doc.Backend(b.Name)
	if held != nil && held.UID == uid {
		return hold{document: true}
	}
	released := slices.Contains(doc.Released, muxconfig.Released{Name: b.Name, UID: uid})
	if listed && !released {
		return hold{document: true}
	}
	var h hold
	for _, p := range proxies {
		if p.Acknowledged(doc) {
			continue
		}
		// A mux that never had the backend has no say, whatever its
		// proxies do.
		if listed || usedBefore(b, mux.Name) || reports(p.Report, b) {
			h.pods = append(h.pods, p.Pod)
		}
	}
	return h
}

func usedBefore(b *v1alpha1.StorageBackend, mux string) bool {
	return slices.Contains(b.Status.UsedBy, v1alpha1.MuxReference{Name: mux})
}

// reports reports whether a proxy has the backend.
func reports(report *muxconfig.Report, b metav1.Object) bool {
	return report != nil && slices.ContainsFunc(report.Members, func(m muxconfig.MemberReport) bool {
		return m.UID == string(b.GetUID())
	})
}

// addHold adds to drain what one mux waits for.
func (r *backendReconciler) addHold(ctx context.Context, drain *status.Drain, mux *v1alpha1.StorageMux,
	b *v1alpha1.StorageBackend, h hold, blocked, busy *[]string,
) error {
	for _, pod := range h.pods {
		drain.WaitingFor = append(drain.WaitingFor, "pod/"+pod)
	}
	name := "StorageMux " + mux.Name
	if !h.document {
		*busy = append(*busy, name+": waiting for "+joined(h.pods)+" to take up the configuration without it")
		return nil
	}
	step, err := r.stepOf(ctx, mux, b)
	if err != nil {
		return err
	}
	if step.Deadline != nil {
		started := step.Deadline.Add(-b.Spec.DrainTimeout.Or(0))
		if drain.StartedAt.IsZero() || started.Before(drain.StartedAt) {
			drain.StartedAt = started
		}
		if step.Deadline.After(drain.Deadline) {
			drain.Deadline = *step.Deadline
		}
	}
	for _, pod := range step.Waiting {
		drain.WaitingFor = append(drain.WaitingFor, "pod/"+pod)
	}
	if len(step.Waiting) == 0 {
		drain.WaitingFor = append(drain.WaitingFor, "storagemux/"+mux.Name)
	}
	if step.State == render.DrainBlocked {
		*blocked = append(*blocked, name+": "+step.Message)
	} else {
		*busy = append(*busy, name+": "+cmp.Or(step.Message, "it is being let go"))
	}
	return nil
}

// stepOf returns the step that mux takes next with the backend, as its own
// reconciler decides it.
func (r *backendReconciler) stepOf(ctx context.Context, mux *v1alpha1.StorageMux, b *v1alpha1.StorageBackend) (render.Drain, error) {
	scope := &muxScope{mux: mux}
	if err := r.gather(ctx, scope); err != nil {
		return render.Drain{}, err
	}
	if err := r.decide(ctx, scope); err != nil {
		return render.Drain{}, err
	}
	found := render.Drain{State: render.DrainStopping}
	for _, d := range scope.result.Drains {
		if d.UID != string(b.UID) {
			continue
		}
		// Several members may be the same backend: the one furthest from
		// its end speaks for all.
		if found.UID == "" || d.State == render.DrainBlocked {
			found = d
		}
	}
	if paused(mux) {
		found.State, found.Message, found.Waiting = render.DrainBlocked, "it is paused by the annotation "+v1alpha1.AnnotationPaused, nil
	}
	return found, nil
}

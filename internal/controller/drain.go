package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/controller/status"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// inDrain is a StorageBackend or StorageMux that is being deleted and held
// until no proxy of another mux uses it.
type inDrain struct {
	object client.Object
	// member names it as members of documents do.
	member muxconfig.Member
	// usedBy are muxes whose proxies may have it although they did not say.
	usedBy func(mux string) bool
}

func backendInDrain(b *v1alpha1.StorageBackend) inDrain {
	return inDrain{b, muxconfig.Member{Backend: b.Name}, func(mux string) bool {
		return int(b.Status.UsedByCount) > len(b.Status.UsedBy) || slices.Contains(b.Status.UsedBy, v1alpha1.MuxReference{Name: mux})
	}}
}

// muxInDrain does not wait for a proxy that said nothing: nobody but its
// backends, which are held too, would miss the mux.
func muxInDrain(m *v1alpha1.StorageMux) inDrain {
	return inDrain{m, muxconfig.Member{Mux: m.Name}, func(string) bool { return false }}
}

func (d inDrain) uid() string { return string(d.object.GetUID()) }

// gatherDrain asks every other mux of the namespace how far it is with letting
// go of d. Muxes, documents and pods are read live: what the cache does not know
// yet may still hold it.
func (s *shared) gatherDrain(ctx context.Context, d inDrain) (*status.Drain, error) {
	namespace := d.object.GetNamespace()
	list := &v1alpha1.StorageMuxList{}
	if err := s.live.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the StorageMuxes of namespace %s: %w", namespace, err)
	}
	documents, err := s.documents.loadLive(ctx, namespace, list.Items)
	if err != nil {
		return nil, err
	}
	pods, err := livePods(ctx, s.live, namespace, "")
	if err != nil {
		return nil, err
	}
	muxes := map[string]*v1alpha1.StorageMux{}
	for i := range list.Items {
		muxes[list.Items[i].Name] = &list.Items[i]
	}
	backends := &v1alpha1.StorageBackendList{}
	if err := s.live.List(ctx, backends, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the StorageBackends of namespace %s: %w", namespace, err)
	}
	near := vicinity{muxes, map[string]*v1alpha1.StorageBackend{}}
	for i := range backends.Items {
		near.backends[backends.Items[i].Name] = &backends.Items[i]
	}
	drain := &status.Drain{}
	var blocked, busy []string
	for i := range list.Items {
		mux := &list.Items[i]
		if mux.DeletionTimestamp != nil {
			continue // its proxies go with it
		}
		proxies := s.proxiesOf(client.ObjectKeyFromObject(mux), pods[mux.Name])
		hold := d.heldBy(mux, near, documents[mux.Name].wire(), proxies)
		if !hold.any() {
			continue
		}
		if err := s.addHold(ctx, drain, mux, d, hold, &blocked, &busy); err != nil {
			return nil, err
		}
	}
	slices.Sort(blocked)
	slices.Sort(busy)
	drain.Blocked = len(blocked) > 0
	drain.Message = strings.Join(append(blocked, busy...), "; ")
	return drain, nil
}

// hold is what keeps an object in one mux.
type hold struct {
	// document: the stored document has it, or a spec lists it and the
	// stored document does not yet say that it was let go.
	document bool
	// pods have not acknowledged the document that lets it go.
	pods []string
}

func (h hold) any() bool { return h.document || len(h.pods) > 0 }

// heldBy judges one mux, among all of the namespace. Without a document there
// are no proxies to wait for.
func (d inDrain) heldBy(mux *v1alpha1.StorageMux, near vicinity, doc *muxconfig.Document, proxies []status.Proxy) hold {
	if doc == nil {
		return hold{}
	}
	listed := d.listed(mux, near, doc)
	if d.in(doc) || listed && !releasedFrom(doc, d.object.GetName(), d.uid()) {
		return hold{document: true}
	}
	var h hold
	for _, p := range proxies {
		if p.Acknowledged(doc) {
			continue
		}
		// A mux that never had it has no say, whatever its proxies do.
		if listed || d.usedBy(mux.Name) || reports(p.Report, d.uid()) {
			h.pods = append(h.pods, p.Pod)
		}
	}
	return h
}

// in reports whether doc holds d.
func (d inDrain) in(doc *muxconfig.Document) bool {
	if d.member.Mux != "" {
		held := doc.Mux(d.member.Mux)
		return held != nil && held.UID == d.uid()
	}
	held := doc.Backend(d.member.Backend)
	return held != nil && held.UID == d.uid()
}

// vicinity is what else there is in a namespace, by name.
type vicinity struct {
	muxes    map[string]*v1alpha1.StorageMux
	backends map[string]*v1alpha1.StorageBackend
}

// facts are those from which doc was rendered for mux.
func (v vicinity) facts(mux *v1alpha1.StorageMux, doc *muxconfig.Document) render.Facts {
	return render.Facts{Mux: mux, Muxes: v.muxes, Backends: v.backends, Stored: doc}.Pinned()
}

// listed reports whether the spec of mux names d, itself or through muxes and
// fallback backends that doc has not let go of.
func (d inDrain) listed(mux *v1alpha1.StorageMux, near vicinity, doc *muxconfig.Document) bool {
	found := false
	facts := near.facts(mux, doc)
	render.EachListed(mux, facts.FindMux, facts.FindBackend, func(member *muxconfig.Member) bool {
		found = found || member.Backend == d.member.Backend && member.Mux == d.member.Mux
		var below client.Object
		if b := near.backends[member.Backend]; b != nil {
			below = b
		} else if m := near.muxes[member.Mux]; m != nil {
			below = m
		}
		return below != nil && !releasedFrom(doc, below.GetName(), string(below.GetUID()))
	})
	return found
}

func releasedFrom(doc *muxconfig.Document, name, uid string) bool {
	return slices.Contains(doc.Released, muxconfig.Released{Name: name, UID: uid})
}

// reports reports whether a proxy has the resource with this UID.
func reports(report *muxconfig.Report, uid string) bool {
	return report != nil && slices.ContainsFunc(report.Members, func(m muxconfig.MemberReport) bool { return m.UID == uid })
}

// addHold adds to drain what one mux waits for.
func (s *shared) addHold(ctx context.Context, drain *status.Drain, mux *v1alpha1.StorageMux,
	d inDrain, h hold, blocked, busy *[]string,
) error {
	for _, pod := range h.pods {
		drain.WaitingFor = append(drain.WaitingFor, "pod/"+pod)
	}
	name := "StorageMux " + mux.Name
	if !h.document {
		*busy = append(*busy, name+": waiting for "+joined(h.pods)+" to take up the configuration without it")
		return nil
	}
	step, err := s.stepOf(ctx, mux, d)
	if err != nil {
		return err
	}
	if step.Deadline != nil {
		started := step.Deadline.Add(-step.Timeout)
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

// stepOf returns the step that mux takes next with d, as its own reconciler
// decides it.
func (s *shared) stepOf(ctx context.Context, mux *v1alpha1.StorageMux, d inDrain) (render.Drain, error) {
	scope := &muxScope{mux: mux}
	if err := s.gather(ctx, scope); err != nil {
		return render.Drain{}, err
	}
	if err := s.decide(ctx, scope); err != nil {
		return render.Drain{}, err
	}
	found := render.Drain{State: render.DrainStopping}
	for _, step := range scope.result.Drains {
		if step.UID != d.uid() {
			continue
		}
		// Several members may be the same resource: the one furthest from
		// its end speaks for all.
		if found.UID == "" || step.State == render.DrainBlocked {
			found = step
		}
	}
	if render.Paused(mux) {
		found.State, found.Message, found.Waiting = render.DrainBlocked, "it is paused by the annotation "+v1alpha1.AnnotationPaused, nil
	}
	return found, nil
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// +kubebuilder:rbac:groups="",resources=secrets;configmaps;persistentvolumeclaims;pods,verbs=get;list;watch

// gather reads all that the document of a mux depends on.
func (r *shared) gather(ctx context.Context, scope *muxScope) error {
	stored, err := r.documents.load(ctx, scope.mux)
	switch {
	case errors.Is(err, errForeign) || errors.Is(err, errFormer):
		stored, scope.notOurs = nil, err
	case err != nil:
		return err
	}
	scope.stored = stored
	scope.facts = render.Facts{
		Mux: scope.mux, Stored: stored.wire(), Now: r.now(), KnownRevision: scope.mux.Status.Revision,
		Muxes: map[string]*v1alpha1.StorageMux{}, Backends: map[string]*v1alpha1.StorageBackend{}, Secrets: map[string]render.Secret{},
		ConfigMaps: map[string]map[string]string{}, Claims: map[string]render.Claim{},
	}
	for _, step := range []func(context.Context, *muxScope) error{
		r.gatherMembers, r.gatherReferences, r.gatherProxies, r.gatherMaterial,
	} {
		if err := step(ctx, scope); err != nil {
			return err
		}
	}
	return nil
}

// gatherMembers reads the muxes and StorageBackends that the specs list at any
// depth, fallback backends by what their candidates name, and those that the
// stored document holds.
func (r *shared) gatherMembers(ctx context.Context, scope *muxScope) error {
	w := memberWalk{shared: r, scope: scope, held: map[string]string{}, seen: map[string]bool{muxKey(scope.mux.Name): true}}
	w.list(scope.mux)
	if doc := scope.facts.Stored; doc != nil {
		for i := range doc.Muxes {
			if m := &doc.Muxes[i]; !muxconfig.IsLadder(m.Name) {
				w.muxes = append(w.muxes, m.Name)
				w.held[muxKey(m.Name)] = m.UID
			}
		}
		for i := range doc.Backends {
			if b := &doc.Backends[i]; !muxconfig.IsCandidate(b.Name) {
				w.backends = append(w.backends, b.Name)
				w.held[b.Name] = b.UID
			}
		}
	}
	for len(w.muxes) > 0 || len(w.backends) > 0 {
		if err := w.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// memberWalk is what gatherMembers has yet to read, and what it has read.
type memberWalk struct {
	shared          *shared
	scope           *muxScope
	muxes, backends []string
	held            map[string]string
	seen            map[string]bool
}

// muxKey tells the name of a mux from that of a backend.
func muxKey(name string) string { return "mux/" + name }

func (w *memberWalk) list(mux *v1alpha1.StorageMux) {
	w.muxes = append(w.muxes, targets(mux, v1alpha1.MemberKindStorageMux)...)
	w.backends = append(w.backends, targets(mux, v1alpha1.MemberKindStorageBackend)...)
}

func (w *memberWalk) step(ctx context.Context) error {
	muxes, backends := w.muxes, w.backends
	w.muxes, w.backends = nil, nil
	for _, name := range muxes {
		m := &v1alpha1.StorageMux{}
		found, err := w.read(ctx, muxKey(name), name, m)
		if err != nil {
			return err
		}
		if found {
			w.scope.facts.Muxes[name] = m
			w.list(m)
		}
	}
	for _, name := range backends {
		b := &v1alpha1.StorageBackend{}
		found, err := w.read(ctx, name, name, b)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		w.scope.facts.Backends[name] = b
		if err := w.candidates(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// candidates goes on with what the candidates of a fallback backend name.
func (w *memberWalk) candidates(ctx context.Context, b *v1alpha1.StorageBackend) error {
	backends, muxes, buckets := render.References(b)
	w.backends, w.muxes = append(w.backends, backends...), append(w.muxes, muxes...)
	for _, bucket := range buckets {
		names, err := w.shared.graph.backendsWith(ctx, b.Namespace, indexBucket, bucket)
		if err != nil {
			return err
		}
		w.backends = append(w.backends, names...)
	}
	return nil
}

// read reads each object once.
func (w *memberWalk) read(ctx context.Context, key, name string, into client.Object) (bool, error) {
	if w.seen[key] {
		return false, nil
	}
	w.seen[key] = true
	return w.shared.readMember(ctx, w.scope, name, w.held[key], into)
}

// readMember reads what a member names, and reports whether it exists. What is
// rendered for the first time must not be deleted already, which the cache may
// not know yet: it is read from the API server. Without its finalizer it is not
// rendered anyway.
func (r *shared) readMember(ctx context.Context, scope *muxScope, name, heldUID string, into client.Object) (bool, error) {
	key := types.NamespacedName{Namespace: scope.mux.Namespace, Name: name}
	err := r.client.Get(ctx, key, into)
	if err == nil && render.HasWorkload(scope.mux) && heldUID != string(into.GetUID()) &&
		into.GetDeletionTimestamp() == nil && controllerutil.ContainsFinalizer(into, v1alpha1.FinalizerDrain) {
		err = r.live.Get(ctx, key, into)
	}
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %T %s: %w", into, key, err)
	}
	return true, nil
}

// gatherReferences reads what the mux and its StorageBackends name.
func (r *shared) gatherReferences(ctx context.Context, scope *muxScope) error {
	refs := refNames{secrets: muxSecrets(scope.mux)}
	for _, b := range scope.facts.Backends {
		of := backendRefs(b)
		refs.secrets = append(refs.secrets, of.secrets...)
		refs.configMaps = append(refs.configMaps, of.configMaps...)
		refs.claims = append(refs.claims, of.claims...)
	}
	return r.readReferences(ctx, scope.mux.Namespace, refs, &scope.facts)
}

// readReferences reads the objects that refs name into f.
func (r *shared) readReferences(ctx context.Context, namespace string, refs refNames, f *render.Facts) error {
	for _, name := range refs.secrets {
		secret, ok, err := r.references.secret(ctx, types.NamespacedName{Namespace: namespace, Name: name})
		if err != nil {
			return err
		}
		if ok {
			f.Secrets[name] = secret
		}
	}
	for _, name := range refs.configMaps {
		data, ok, err := r.references.configMap(ctx, types.NamespacedName{Namespace: namespace, Name: name})
		if err != nil {
			return err
		}
		if ok {
			f.ConfigMaps[name] = data
		}
	}
	for _, name := range refs.claims {
		claim, ok, err := r.references.claim(ctx, types.NamespacedName{Namespace: namespace, Name: name})
		if err != nil {
			return err
		}
		if ok {
			f.Claims[name] = claim
		}
	}
	return nil
}

// gatherProxies reads the pods from the cache.
func (r *shared) gatherProxies(ctx context.Context, scope *muxScope) error {
	pods, err := cachedPods(ctx, r.client, client.ObjectKeyFromObject(scope.mux))
	if err != nil {
		return err
	}
	r.takePods(scope, pods)
	return nil
}

// gatherProxiesLive reads the pods from the API server: one that the cache does
// not know yet may hold a member that is on its way out.
func (r *shared) gatherProxiesLive(ctx context.Context, scope *muxScope) error {
	pods, err := livePods(ctx, r.live, scope.mux.Namespace, scope.mux.Name)
	if err != nil {
		return err
	}
	r.takePods(scope, pods[scope.mux.Name])
	return nil
}

func (r *shared) takePods(scope *muxScope, pods []corev1.Pod) {
	scope.pods = pods
	scope.proxies = r.proxiesOf(client.ObjectKeyFromObject(scope.mux), pods)
	scope.facts.Proxies = facts(scope.proxies)
	for _, p := range scope.facts.Proxies {
		if p.Report != nil && p.Report.Applied != nil {
			scope.facts.KnownRevision = max(scope.facts.KnownRevision, p.Report.Applied.Revision)
		}
	}
}

// gatherMaterial takes over what was generated before, and makes what is
// missing or near its end.
func (r *shared) gatherMaterial(ctx context.Context, scope *muxScope) error {
	material := &scope.facts.Material
	if !render.HasWorkload(scope.mux) && scope.facts.Stored == nil {
		return nil
	}
	if doc := scope.facts.Stored; doc != nil {
		material.Admin, material.Keys = doc.Admin, doc.Keys
		if pairs := doc.Frontend.KeyPairs; len(pairs) == 1 && pairs[0].Generated() {
			material.Client = pairs[0]
		}
	}
	if material.Admin.Due(scope.facts.Now) {
		admin, err := muxconfig.NewAdmin(scope.facts.Now)
		if err != nil {
			return err
		}
		material.Admin = admin
	}
	if material.Keys.Current == "" {
		material.Keys.Current = muxconfig.NewSealingKey()
	}
	if material.Client.AccessKeyID == "" {
		// The document may be lost while applications still hold the pair.
		data, err := r.references.secretOf(ctx, scope.mux, render.ConnectionSecretName(scope.mux.Name))
		if err != nil {
			return err
		}
		pair := muxconfig.KeyPair{
			AccessKeyID:     string(data[v1alpha1.SecretKeyAWSAccessKeyID]),
			SecretAccessKey: muxconfig.Secret(data[v1alpha1.SecretKeyAWSSecretAccessKey]),
		}
		if !pair.Generated() || pair.SecretAccessKey == "" {
			pair = muxconfig.NewKeyPair()
		}
		material.Client = pair
	}
	return nil
}

// decide renders the next document.
func (r *shared) decide(ctx context.Context, scope *muxScope) error {
	var written int64
	if scope.facts.Stored != nil {
		written = scope.facts.Stored.Transitions
	}
	transitions, err := r.leadership.transitions(ctx, written)
	if err != nil {
		return err
	}
	scope.facts.Transitions = transitions
	scope.result, err = render.Document(scope.facts)
	if err == nil && len(scope.result.Drains) > 0 {
		if err := r.gatherProxiesLive(ctx, scope); err != nil {
			return err
		}
		scope.result, err = render.Document(scope.facts)
	}
	if err != nil {
		return fmt.Errorf("render StorageMux %s/%s: %w", scope.mux.Namespace, scope.mux.Name, err)
	}
	for _, d := range scope.result.Drains {
		if d.Deadline != nil {
			scope.later(max(time.Second, d.Deadline.Add(render.OverdueGrace+time.Second).Sub(scope.facts.Now)))
		}
	}
	return nil
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// +kubebuilder:rbac:groups="",resources=secrets;configmaps;persistentvolumeclaims;pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=storagemux.dev,resources=storagebackends,verbs=get;list;watch

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
		Backends: map[string]*v1alpha1.StorageBackend{}, Secrets: map[string]render.Secret{},
		ConfigMaps: map[string]map[string]string{}, Claims: map[string]render.Claim{},
	}
	for _, step := range []func(context.Context, *muxScope) error{r.gatherBackends, r.gatherReferences, r.gatherProxies, r.gatherMaterial} {
		if err := step(ctx, scope); err != nil {
			return err
		}
	}
	return nil
}

// gatherBackends reads the StorageBackends that the spec lists or the stored
// document holds.
func (r *shared) gatherBackends(ctx context.Context, scope *muxScope) error {
	names := targets(scope.mux, v1alpha1.MemberKindStorageBackend)
	held := map[string]string{}
	if doc := scope.facts.Stored; doc != nil {
		for i := range doc.Backends {
			held[doc.Backends[i].Name] = doc.Backends[i].UID
			names = append(names, doc.Backends[i].Name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		key := types.NamespacedName{Namespace: scope.mux.Namespace, Name: name}
		b := &v1alpha1.StorageBackend{}
		err := r.client.Get(ctx, key, b)
		if err == nil && held[name] != string(b.UID) && b.DeletionTimestamp == nil {
			// The cache may not know yet that it is being deleted, and
			// what is rendered for the first time must not be.
			b = &v1alpha1.StorageBackend{}
			err = r.live.Get(ctx, key, b)
		}
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("read StorageBackend %s: %w", key, err)
		default:
			scope.facts.Backends[name] = b
		}
	}
	return nil
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

// gatherProxies reads the pods: live while a member is on its way out, because
// a pod that the cache does not know yet may hold it.
func (r *shared) gatherProxies(ctx context.Context, scope *muxScope) error {
	var err error
	key := client.ObjectKeyFromObject(scope.mux)
	if anyLeaving(scope) {
		var pods map[string][]corev1.Pod
		pods, err = livePods(ctx, r.live, key.Namespace, key.Name)
		scope.pods = pods[key.Name]
	} else {
		scope.pods, err = cachedPods(ctx, r.client, key)
	}
	if err != nil {
		return err
	}
	scope.proxies = proxiesOf(r.fleet, key, scope.pods)
	scope.facts.Proxies = facts(scope.proxies)
	for _, p := range scope.facts.Proxies {
		if p.Report != nil && p.Report.Applied != nil {
			scope.facts.KnownRevision = max(scope.facts.KnownRevision, p.Report.Applied.Revision)
		}
	}
	return nil
}

// anyLeaving reports whether a backend is being deleted or was taken from the
// list while the stored document holds it.
func anyLeaving(scope *muxScope) bool {
	for _, b := range scope.facts.Backends {
		if b.DeletionTimestamp != nil {
			return true
		}
	}
	doc := scope.facts.Stored
	if doc == nil {
		return false
	}
	listed := targets(scope.mux, v1alpha1.MemberKindStorageBackend)
	return slices.ContainsFunc(doc.Backends, func(b muxconfig.Backend) bool { return !slices.Contains(listed, b.Name) })
}

// gatherMaterial takes over what was generated before, and makes what is
// missing or near its end.
func (r *shared) gatherMaterial(ctx context.Context, scope *muxScope) error {
	material := &scope.facts.Material
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

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// Indexes of the cache: from what a spec names to the object that names it.
const (
	indexBackends   = "refs.backends"
	indexMuxes      = "refs.muxes"
	indexSecrets    = "refs.secrets"
	indexConfigMaps = "refs.configMaps"
	indexClaims     = "refs.claims"

	indexDeleting = "deleting"
	indexPods     = "mux"
)

// addIndexes registers the indexes.
func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		object client.Object
		name   string
		names  func(client.Object) []string
	}{
		{&v1alpha1.StorageMux{}, indexBackends, func(o client.Object) []string {
			return targets(o.(*v1alpha1.StorageMux), v1alpha1.MemberKindStorageBackend)
		}},
		{&v1alpha1.StorageMux{}, indexMuxes, func(o client.Object) []string {
			return targets(o.(*v1alpha1.StorageMux), v1alpha1.MemberKindStorageMux)
		}},
		{&v1alpha1.StorageMux{}, indexSecrets, func(o client.Object) []string { return muxSecrets(o.(*v1alpha1.StorageMux)) }},
		{&v1alpha1.StorageBackend{}, indexSecrets, func(o client.Object) []string { return backendRefs(o.(*v1alpha1.StorageBackend)).secrets }},
		{&v1alpha1.StorageBackend{}, indexConfigMaps, func(o client.Object) []string { return backendRefs(o.(*v1alpha1.StorageBackend)).configMaps }},
		{&v1alpha1.StorageBackend{}, indexClaims, func(o client.Object) []string { return backendRefs(o.(*v1alpha1.StorageBackend)).claims }},
		{&corev1.Pod{}, indexPods, func(o client.Object) []string { return []string{o.GetLabels()[v1alpha1.LabelMux]} }},
		{&v1alpha1.StorageBackend{}, indexDeleting, isDeleting},
		{&v1alpha1.StorageMux{}, indexDeleting, isDeleting},
	} {
		if err := indexer.IndexField(ctx, index.object, index.name, index.names); err != nil {
			return fmt.Errorf("index %T by %s: %w", index.object, index.name, err)
		}
	}
	return nil
}

func isDeleting(o client.Object) []string {
	return []string{strconv.FormatBool(o.GetDeletionTimestamp() != nil)}
}

// targets are the names of the members of one kind, each once.
func targets(mux *v1alpha1.StorageMux, kind v1alpha1.MemberKind) []string {
	var names []string
	for i := range mux.Spec.Backends {
		if k, name := mux.Spec.Backends[i].Target(); k == kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// muxSecrets are the Secrets that a mux names itself.
func muxSecrets(mux *v1alpha1.StorageMux) []string {
	var names []string
	for _, ref := range mux.Spec.Frontend.Auth.SecretRefs {
		names = append(names, ref.Name)
	}
	if ref := mux.Spec.Frontend.TLSSecretRef; ref != nil {
		names = append(names, ref.Name)
	}
	return names
}

// references of a StorageBackend, by kind.
type refNames struct{ secrets, configMaps, claims []string }

func backendRefs(b *v1alpha1.StorageBackend) refNames {
	var refs refNames
	auth := func(a v1alpha1.BackendAuth) {
		if a.SecretRef != nil {
			refs.secrets = append(refs.secrets, a.SecretRef.Name)
		}
	}
	bundle := func(ref *v1alpha1.CABundleReference) {
		if ref != nil {
			refs.configMaps = append(refs.configMaps, ref.Name)
		}
	}
	switch spec := b.Spec; {
	case spec.S3 != nil:
		auth(spec.S3.Auth)
		bundle(spec.S3.CABundleRef)
	case spec.HTTP != nil:
		auth(spec.HTTP.Auth)
		bundle(spec.HTTP.CABundleRef)
	case spec.Bunny != nil:
		auth(spec.Bunny.Auth)
	case spec.Swift != nil:
		auth(spec.Swift.Auth)
		bundle(spec.Swift.CABundleRef)
	case spec.Azure != nil:
		auth(spec.Azure.Auth)
	case spec.File != nil && spec.File.PersistentVolumeClaim != nil:
		refs.claims = append(refs.claims, spec.File.PersistentVolumeClaim.ClaimName)
	}
	return refs
}

// graph finds who uses what, from the cache.
type graph struct{ client.Reader }

// muxesWith returns the muxes of a namespace whose index has the value.
func (g graph) muxesWith(ctx context.Context, namespace, index, value string) ([]v1alpha1.StorageMux, error) {
	list := &v1alpha1.StorageMuxList{}
	if err := g.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{index: value}); err != nil {
		return nil, fmt.Errorf("list the StorageMuxes of namespace %s with %s %s: %w", namespace, index, value, err)
	}
	return list.Items, nil
}

// users returns the names of the muxes that contain a StorageBackend at any
// depth, sorted.
func (g graph) users(ctx context.Context, backend types.NamespacedName) ([]string, error) {
	direct, err := g.muxesWith(ctx, backend.Namespace, indexBackends, backend.Name)
	if err != nil {
		return nil, err
	}
	return g.withParents(ctx, backend.Namespace, direct)
}

// withParents adds all muxes that contain one of muxes at any depth.
func (g graph) withParents(ctx context.Context, namespace string, muxes []v1alpha1.StorageMux) ([]string, error) {
	seen := map[string]bool{}
	for len(muxes) > 0 {
		var next []v1alpha1.StorageMux
		for i := range muxes {
			if seen[muxes[i].Name] {
				continue
			}
			seen[muxes[i].Name] = true
			parents, err := g.muxesWith(ctx, namespace, indexMuxes, muxes[i].Name)
			if err != nil {
				return nil, err
			}
			next = append(next, parents...)
		}
		muxes = next
	}
	names := make([]string, 0, len(seen))
	for name := range seen {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// parents returns the names of all muxes that contain mux at any depth.
func (g graph) parents(ctx context.Context, mux *v1alpha1.StorageMux) ([]string, error) {
	names, err := g.withParents(ctx, mux.Namespace, []v1alpha1.StorageMux{*mux})
	return slices.DeleteFunc(names, func(name string) bool { return name == mux.Name }), err
}

// below returns the names of all that mux contains at any depth.
func (g graph) below(ctx context.Context, mux *v1alpha1.StorageMux) (muxes, backends []string, err error) {
	find := func(name string) *v1alpha1.StorageMux {
		nested := &v1alpha1.StorageMux{}
		switch failed := g.Get(ctx, types.NamespacedName{Namespace: mux.Namespace, Name: name}, nested); {
		case apierrors.IsNotFound(failed):
			return nil
		case failed != nil:
			err = errors.Join(err, fmt.Errorf("read StorageMux %s/%s: %w", mux.Namespace, name, failed))
			return nil
		}
		return nested
	}
	render.EachListed(mux, find, func(member *muxconfig.Member) bool {
		if member.Mux != "" {
			muxes = append(muxes, member.Mux)
		} else {
			backends = append(backends, member.Backend)
		}
		return true
	})
	return union(muxes, nil), union(backends, nil), err
}

// deleting returns the names of the muxes that are being deleted.
func (g graph) deleting(ctx context.Context, namespace string) ([]string, error) {
	muxes, err := g.muxesWith(ctx, namespace, indexDeleting, "true")
	names := make([]string, 0, len(muxes))
	for i := range muxes {
		names = append(names, muxes[i].Name)
	}
	return names, err
}

// backendsWith returns the names of the StorageBackends whose index has the value.
func (g graph) backendsWith(ctx context.Context, namespace, index, value string) ([]string, error) {
	list := &v1alpha1.StorageBackendList{}
	if err := g.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{index: value}); err != nil {
		return nil, fmt.Errorf("list the StorageBackends of namespace %s with %s %s: %w", namespace, index, value, err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// backendsNaming returns requests for the StorageBackends that name an object.
func (g graph) backendsNaming(ctx context.Context, index string, o client.Object) []reconcile.Request {
	names, err := g.backendsWith(ctx, o.GetNamespace(), index, o.GetName())
	if err != nil {
		return nil // the cache ends with the process
	}
	return requests(o.GetNamespace(), names)
}

// muxesNaming returns requests for the muxes that depend on an object which
// they, or StorageBackends in them, name.
func (g graph) muxesNaming(ctx context.Context, index string, o client.Object) []reconcile.Request {
	backends, err := g.backendsWith(ctx, o.GetNamespace(), index, o.GetName())
	if err != nil {
		return nil
	}
	var names []string
	for _, backend := range backends {
		users, err := g.users(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: backend})
		if err != nil {
			return nil
		}
		names = append(names, users...)
	}
	if index == indexSecrets {
		direct, err := g.muxesWith(ctx, o.GetNamespace(), indexSecrets, o.GetName())
		if err != nil {
			return nil
		}
		for i := range direct {
			names = append(names, direct[i].Name)
		}
	}
	return requests(o.GetNamespace(), union(names, nil))
}

// union returns the names of both lists, sorted and each once.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func requests(namespace string, names []string) []reconcile.Request {
	list := make([]reconcile.Request, 0, len(names))
	for _, name := range names {
		list = append(list, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return list
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	// From the buckets that a StorageBackend has, and that candidates name.
	indexBucket  = "bucket"
	indexBuckets = "refs.buckets"

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
		{&v1alpha1.StorageBackend{}, indexBackends, func(o client.Object) []string {
			backends, _, _ := render.References(o.(*v1alpha1.StorageBackend))
			return union(backends, nil)
		}},
		{&v1alpha1.StorageBackend{}, indexMuxes, func(o client.Object) []string {
			_, muxes, _ := render.References(o.(*v1alpha1.StorageBackend))
			return union(muxes, nil)
		}},
		{&v1alpha1.StorageBackend{}, indexBuckets, func(o client.Object) []string {
			_, _, buckets := render.References(o.(*v1alpha1.StorageBackend))
			return union(buckets, nil)
		}},
		{&v1alpha1.StorageBackend{}, indexBucket, func(o client.Object) []string {
			if s3 := o.(*v1alpha1.StorageBackend).Spec.S3; s3 != nil {
				return []string{s3.Bucket}
			}
			return nil
		}},
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
	return g.usersOf(ctx, backend.Namespace, []string{backend.Name}, nil)
}

// usersOf returns the names of the muxes that contain one of backends, or one of
// muxes, at any depth, those muxes included. Fallback backends lie between as
// muxes do.
func (g graph) usersOf(ctx context.Context, namespace string, backends, muxes []string) ([]string, error) {
	seenBackends, seenMuxes := map[string]bool{}, map[string]bool{}
	for len(backends) > 0 || len(muxes) > 0 {
		var nextBackends, nextMuxes []string
		for _, name := range backends {
			if seenBackends[name] {
				continue
			}
			seenBackends[name] = true
			direct, err := g.muxesWith(ctx, namespace, indexBackends, name)
			if err != nil {
				return nil, err
			}
			nextMuxes = append(nextMuxes, namesOf(direct)...)
			above, err := g.fallbacksWith(ctx, namespace, name)
			if err != nil {
				return nil, err
			}
			nextBackends = append(nextBackends, above...)
		}
		for _, name := range muxes {
			if seenMuxes[name] {
				continue
			}
			seenMuxes[name] = true
			parents, err := g.muxesWith(ctx, namespace, indexMuxes, name)
			if err != nil {
				return nil, err
			}
			nextMuxes = append(nextMuxes, namesOf(parents)...)
			above, err := g.backendsWith(ctx, namespace, indexMuxes, name)
			if err != nil {
				return nil, err
			}
			nextBackends = append(nextBackends, above...)
		}
		backends, muxes = nextBackends, nextMuxes
	}
	return slices.Sorted(maps.Keys(seenMuxes)), nil
}

// fallbacksWith returns the names of the fallback backends one of whose candidates
// is a StorageBackend, by its name or its bucket.
func (g graph) fallbacksWith(ctx context.Context, namespace, backend string) ([]string, error) {
	names, err := g.backendsWith(ctx, namespace, indexBackends, backend)
	if err != nil {
		return nil, err
	}
	b := &v1alpha1.StorageBackend{}
	err = g.Get(ctx, types.NamespacedName{Namespace: namespace, Name: backend}, b)
	if apierrors.IsNotFound(err) || err == nil && b.Spec.S3 == nil {
		return names, nil
	} else if err != nil {
		return nil, fmt.Errorf("read StorageBackend %s/%s: %w", namespace, backend, err)
	}
	byBucket, err := g.backendsWith(ctx, namespace, indexBuckets, b.Spec.S3.Bucket)
	return union(names, byBucket), err
}

func namesOf(muxes []v1alpha1.StorageMux) []string {
	names := make([]string, len(muxes))
	for i := range muxes {
		names[i] = muxes[i].Name
	}
	return names
}

// parents returns the names of all muxes that contain mux at any depth.
func (g graph) parents(ctx context.Context, mux *v1alpha1.StorageMux) ([]string, error) {
	names, err := g.usersOf(ctx, mux.Namespace, nil, []string{mux.Name})
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
	backend := func(name string) *v1alpha1.StorageBackend {
		found, failed := g.backendNamed(ctx, mux.Namespace, name)
		err = errors.Join(err, failed)
		return found
	}
	render.EachListed(mux, find, backend, func(member *muxconfig.Member) bool {
		if member.Mux != "" {
			muxes = append(muxes, member.Mux)
		} else {
			backends = append(backends, member.Backend)
		}
		return true
	})
	return union(muxes, nil), union(backends, nil), err
}

// backendNamed returns the StorageBackend of that name, or the one with the bucket
// of that render.BucketKey, nil if there is none.
func (g graph) backendNamed(ctx context.Context, namespace, name string) (*v1alpha1.StorageBackend, error) {
	if bucket, is := strings.CutPrefix(name, render.BucketKey("")); is {
		names, err := g.backendsWith(ctx, namespace, indexBucket, bucket)
		if err != nil || len(names) != 1 {
			return nil, err
		}
		name = names[0]
	}
	b := &v1alpha1.StorageBackend{}
	err := g.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, b)
	if apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read StorageBackend %s/%s: %w", namespace, name, err)
	}
	return b, nil
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

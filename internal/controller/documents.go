package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/controller/fleet"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// documents reads and writes the documents that proxies are given, one in the
// config Secret of each mux. What was read is kept as long as the Secret has
// the same version.
type documents struct {
	cached, live client.Reader
	writer       client.Writer

	mu    sync.Mutex
	known map[types.NamespacedName]*storedDocument
}

// storedDocument is the content of one version of a config Secret.
type storedDocument struct {
	version string
	// owner is what the Secret belongs to, nil if to nothing.
	owner *metav1.OwnerReference
	// document is nil where the Secret holds none that this build can read.
	document *muxconfig.Document
	// former are the admin sections of the documents before, newest first:
	// proxies serve them until they have read the newest.
	former []muxconfig.Admin
	// written is when this process wrote it, zero if it did not.
	written time.Time
}

// takeUp is how long proxies may take to report a new document before status
// says that they have not: mostly they need a small part of it, and one write of
// status is enough.
const takeUp = 300 * time.Millisecond

// fresh returns how much is left of takeUp.
func (s *storedDocument) fresh(now time.Time) time.Duration {
	if s == nil {
		return 0
	}
	return max(0, takeUp-now.Sub(s.written))
}

// formerAdmins is how many admin sections are kept besides the newest.
const formerAdmins = 2

func configKey(mux *v1alpha1.StorageMux) types.NamespacedName {
	return types.NamespacedName{Namespace: mux.Namespace, Name: render.ConfigSecretName(mux.Name)}
}

// load returns the stored document of mux, nil if there is none, and errForeign
// or errFormer if a Secret that is not of this mux has its name.
func (d *documents) load(ctx context.Context, mux *v1alpha1.StorageMux) (*storedDocument, error) {
	key := configKey(mux)
	meta := metadataOf(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := d.cached.Get(ctx, key, meta)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("look up Secret %s: %w", key, err)
	}
	if err != nil {
		meta = nil
	}
	if meta == nil && !render.HasWorkload(mux) {
		return nil, nil
	}
	return d.resolve(ctx, mux, meta)
}

// loadLive is load without the cache, for one namespace at once. An entry is
// absent where load would return nil or errForeign.
func (d *documents) loadLive(ctx context.Context, namespace string, muxes []v1alpha1.StorageMux) (map[string]*storedDocument, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := d.live.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue})
	if err != nil {
		return nil, fmt.Errorf("list the config Secrets of namespace %s: %w", namespace, err)
	}
	secrets := map[string]*metav1.PartialObjectMetadata{}
	for i := range list.Items {
		secrets[list.Items[i].Name] = &list.Items[i]
	}
	stored := map[string]*storedDocument{}
	for i := range muxes {
		mux := &muxes[i]
		if secrets[render.ConfigSecretName(mux.Name)] == nil && !render.HasWorkload(mux) {
			continue
		}
		// One that is not in the list may have lost its labels: resolve
		// asks for it by name.
		one, err := d.resolve(ctx, mux, secrets[render.ConfigSecretName(mux.Name)])
		switch {
		case errors.Is(err, errForeign) || errors.Is(err, errFormer):
		case err != nil:
			return nil, err
		case one != nil:
			stored[mux.Name] = one
		}
	}
	return stored, nil
}

// resolve returns what is known at the version of meta, or reads it. A missing
// meta may only mean that the cache is behind.
func (d *documents) resolve(ctx context.Context, mux *v1alpha1.StorageMux, meta *metav1.PartialObjectMetadata) (*storedDocument, error) {
	key := types.NamespacedName{Namespace: mux.Namespace, Name: mux.Name}
	if meta != nil {
		d.mu.Lock()
		known := d.known[key]
		d.mu.Unlock()
		if known != nil && known.version == meta.ResourceVersion {
			return known.of(mux)
		}
	}
	secret := &corev1.Secret{}
	if err := d.live.Get(ctx, configKey(mux), secret); err != nil {
		if apierrors.IsNotFound(err) {
			d.forget(key)
			return nil, nil
		}
		return nil, fmt.Errorf("read Secret %s: %w", configKey(mux), err)
	}
	return d.keep(key, secret).of(mux)
}

// of returns s if it belongs to mux.
func (s *storedDocument) of(mux *v1alpha1.StorageMux) (*storedDocument, error) {
	return s, ownership(s.owner, mux)
}

func (s *storedDocument) ownedBy(uid string) bool {
	return s.owner != nil && string(s.owner.UID) == uid
}

// keep remembers the content of secret.
func (d *documents) keep(key types.NamespacedName, secret *corev1.Secret) *storedDocument {
	stored := &storedDocument{version: secret.ResourceVersion, owner: metav1.GetControllerOf(secret)}
	// A document that cannot be read is as good as none: a new one takes its
	// place, under a revision that status and proxies still know.
	if document, err := muxconfig.Decode(secret.Data[muxconfig.SecretKey]); err == nil && stored.ownedBy(document.Owner.UID) {
		stored.document = document
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if before := d.known[key]; before != nil && before.owner != nil && stored.ownedBy(string(before.owner.UID)) {
		stored.former = before.former
		if before.document != nil && (stored.document == nil || before.document.Admin != stored.document.Admin) {
			stored.former = append([]muxconfig.Admin{before.document.Admin}, before.former...)
			stored.former = stored.former[:min(len(stored.former), formerAdmins)]
		}
	}
	if d.known == nil {
		d.known = map[types.NamespacedName]*storedDocument{}
	}
	d.known[key] = stored
	return stored
}

func (d *documents) forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, key)
}

// write stores next in place of stored, which may be nil, and fails with a
// conflict if the Secret has changed since stored was read.
func (d *documents) write(ctx context.Context, mux *v1alpha1.StorageMux, stored *storedDocument, next *muxconfig.Document) (*storedDocument, error) {
	key := types.NamespacedName{Namespace: mux.Namespace, Name: mux.Name}
	data, err := muxconfig.Encode(next)
	if err != nil {
		return nil, fmt.Errorf("encode the document of StorageMux %s: %w", key, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: mux.Namespace, Name: render.ConfigSecretName(mux.Name),
		Labels:          render.ChildLabels(mux.Name),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(mux, v1alpha1.GroupVersion.WithKind(v1alpha1.KindStorageMux))},
	}, Type: corev1.SecretTypeOpaque, Data: map[string][]byte{muxconfig.SecretKey: data}}
	if stored == nil {
		if err := d.writer.Create(ctx, secret, fieldOwner); err != nil {
			return nil, fmt.Errorf("create Secret %s: %w", configKey(mux), err)
		}
		return d.keep(key, secret), nil
	}
	if stored.document != nil && !next.Supersedes(stored.document) {
		return nil, fmt.Errorf("update Secret %s: revision %d must not replace revision %d", configKey(mux), next.Revision, stored.document.Revision)
	}
	current := &corev1.Secret{}
	if err := d.live.Get(ctx, configKey(mux), current); err != nil {
		return nil, fmt.Errorf("read Secret %s before its update: %w", configKey(mux), err)
	}
	if current.ResourceVersion != stored.version {
		d.keep(key, current)
		return nil, apierrors.NewConflict(corev1.Resource("secrets"), current.Name, errors.New("it has changed since the document was rendered"))
	}
	current.Data = secret.Data
	if current.Labels == nil {
		current.Labels = map[string]string{}
	}
	for name, value := range secret.Labels {
		current.Labels[name] = value
	}
	if err := d.writer.Update(ctx, current, fieldOwner); err != nil {
		return nil, fmt.Errorf("update Secret %s: %w", configKey(mux), err)
	}
	kept := d.keep(key, current)
	kept.written = time.Now()
	return kept, nil
}

// access is what opens the admin ports of the proxies that read stored.
func (s *storedDocument) access() fleet.Access {
	var access fleet.Access
	if s == nil {
		return access
	}
	admins := s.former
	if s.document != nil {
		admins = slices.Insert(slices.Clone(admins), 0, s.document.Admin)
	}
	for _, admin := range admins {
		access.Tokens = append(access.Tokens, admin.Token)
		access.Certs = append(access.Certs, admin.TLS.Cert)
	}
	return access
}

// wire returns the document, nil without one.
func (s *storedDocument) wire() *muxconfig.Document {
	if s == nil {
		return nil
	}
	return s.document
}

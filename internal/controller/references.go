package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/render"
)

// references reads the Secrets, ConfigMaps and claims that specs name. Of all
// of them only metadata is watched and cached; content is read from the API
// server when metadata shows a version that was not read yet, and is forgotten
// when nothing has asked for it in a while.
type references struct {
	cached, live client.Reader
	// permitted selects the Secrets that specs may name.
	permitted labels.Selector

	mu    sync.Mutex
	known map[referenceKey]*referenced
	swept time.Time
}

type referenceKey struct {
	kind string
	types.NamespacedName
}

// referenced is content at one version. Holders must not change it.
type referenced struct {
	version string
	value   any
	used    time.Time
}

// referenceLife is how long content is kept that nothing asks for.
const referenceLife = 30 * time.Minute

// secret returns the content of a Secret that a spec names, and false if it
// does not exist.
func (r *references) secret(ctx context.Context, key types.NamespacedName) (render.Secret, bool, error) {
	meta, data, err := r.secretData(ctx, key)
	if err != nil || meta == nil {
		return render.Secret{}, false, err
	}
	if !r.permitted.Matches(labels.Set(meta.Labels)) {
		return render.Secret{Refused: true}, true, nil
	}
	return render.Secret{Data: data}, true, nil
}

// secretOf returns the content of a Secret that mux owns, nil if there is none.
func (r *references) secretOf(ctx context.Context, mux *v1alpha1.StorageMux, name string) (map[string][]byte, error) {
	meta, data, err := r.secretData(ctx, types.NamespacedName{Namespace: mux.Namespace, Name: name})
	if err != nil || meta == nil || ownership(metav1.GetControllerOf(meta), mux) != nil {
		return nil, err
	}
	return data, nil
}

func (r *references) secretData(ctx context.Context, key types.NamespacedName) (*metav1.PartialObjectMetadata, map[string][]byte, error) {
	meta, value, err := r.read(ctx, "Secret", key, &corev1.Secret{}, func(o client.Object) any {
		return o.(*corev1.Secret).Data
	})
	if err != nil || meta == nil {
		return nil, nil, err
	}
	return meta, value.(map[string][]byte), nil
}

// configMap returns the content of a ConfigMap, and false if it does not exist.
func (r *references) configMap(ctx context.Context, key types.NamespacedName) (map[string]string, bool, error) {
	meta, value, err := r.read(ctx, "ConfigMap", key, &corev1.ConfigMap{}, func(o client.Object) any {
		return o.(*corev1.ConfigMap).Data
	})
	if err != nil || meta == nil {
		return nil, false, err
	}
	return value.(map[string]string), true, nil
}

// claim returns what matters of a PersistentVolumeClaim, and false if it does
// not exist.
func (r *references) claim(ctx context.Context, key types.NamespacedName) (render.Claim, bool, error) {
	meta, value, err := r.read(ctx, "PersistentVolumeClaim", key, &corev1.PersistentVolumeClaim{}, func(o client.Object) any {
		return render.Claim{SingleNode: !slices.ContainsFunc(o.(*corev1.PersistentVolumeClaim).Spec.AccessModes,
			func(m corev1.PersistentVolumeAccessMode) bool {
				return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
			})}
	})
	if err != nil || meta == nil {
		return render.Claim{}, false, err
	}
	return value.(render.Claim), true, nil
}

// read returns nil metadata if the object does not exist. into is where a live
// read puts the object, pick takes from it what is kept.
func (r *references) read(ctx context.Context, kind string, key types.NamespacedName, into client.Object,
	pick func(client.Object) any,
) (*metav1.PartialObjectMetadata, any, error) {
	meta := metadataOf(corev1.SchemeGroupVersion.WithKind(kind))
	if err := r.cached.Get(ctx, key, meta); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("look up %s %s: %w", kind, key, err)
	}
	at := referenceKey{kind, key}
	if value, ok := r.recall(at, meta.ResourceVersion); ok {
		return meta, value, nil
	}
	if err := r.live.Get(ctx, key, into); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, nil
		}
		return nil, nil, fmt.Errorf("read %s %s: %w", kind, key, err)
	}
	value := pick(into)
	r.keep(at, into.GetResourceVersion(), value)
	meta.Labels = into.GetLabels()
	return meta, value, nil
}

func (r *references) recall(at referenceKey, version string) (any, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.known[at]
	if known == nil || known.version != version {
		return nil, false
	}
	known.used = time.Now()
	return known.value, true
}

func (r *references) keep(at referenceKey, version string, value any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.known == nil {
		r.known = map[referenceKey]*referenced{}
	}
	r.known[at] = &referenced{version: version, value: value, used: now}
	if now.Sub(r.swept) < referenceLife {
		return
	}
	r.swept = now
	for other, known := range r.known {
		if now.Sub(known.used) > referenceLife {
			delete(r.known, other)
		}
	}
}

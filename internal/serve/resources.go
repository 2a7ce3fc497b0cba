package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// defaultNamespace is that of objects that name none.
const defaultNamespace = metav1.NamespaceDefault

// id names an object.
type id struct{ kind, namespace, name string }

// resources are the objects of all manifests, admitted and typed.
type resources struct {
	muxes      map[types.NamespacedName]*v1alpha1.StorageMux
	backends   map[types.NamespacedName]*v1alpha1.StorageBackend
	secrets    map[types.NamespacedName]render.Secret
	configMaps map[types.NamespacedName]map[string]string
	// sources are the manifests of ours, as admitted.
	sources map[id]manifest
}

// load reads and admits the manifests at path. before are the resources that
// they replace, nil at the start. The error is a Problem where the user can
// mend it.
func load(files []file, before *resources) (*resources, error) {
	r := &resources{
		muxes:      map[types.NamespacedName]*v1alpha1.StorageMux{},
		backends:   map[types.NamespacedName]*v1alpha1.StorageBackend{},
		secrets:    map[types.NamespacedName]render.Secret{},
		configMaps: map[types.NamespacedName]map[string]string{},
		sources:    map[id]manifest{},
	}
	for _, f := range files {
		manifests, err := parse(f)
		if err != nil {
			return nil, err
		}
		for _, m := range manifests {
			if err := r.add(m, before); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// add takes in an object of a kind that counts, and passes over all others.
func (r *resources) add(m manifest, before *resources) error {
	gvk := m.object.GroupVersionKind()
	ours := gvk.Group == v1alpha1.GroupName
	core := gvk.Group == "" && gvk.Version == "v1" && (gvk.Kind == "Secret" || gvk.Kind == "ConfigMap")
	if !ours && !core {
		return nil
	}
	if m.object.GetNamespace() == "" {
		m.object.SetNamespace(defaultNamespace)
	}
	key := id{gvk.Kind, m.object.GetNamespace(), m.object.GetName()}
	if other, ok := r.sources[key]; ok {
		return problemf(m, "%s holds an object of this name too", other.file)
	}
	r.sources[key] = m
	name := types.NamespacedName{Namespace: key.namespace, Name: key.name}
	if core {
		return r.addCore(m, name)
	}
	return r.addOurs(m, key, name, before)
}

func (r *resources) addOurs(m manifest, key id, name types.NamespacedName, before *resources) error {
	byKind, err := schemas()
	if err != nil {
		return err
	}
	kind := byKind[key.kind]
	if kind == nil || m.object.GroupVersionKind().Version != v1alpha1.GroupVersion.Version {
		return problemf(m, "no such kind in %s; there are %s in version %s", v1alpha1.GroupName,
			strings.Join(slices.Sorted(maps.Keys(byKind)), " and "), v1alpha1.GroupVersion.Version)
	}
	delete(m.object.Object, "status")
	var old *unstructured.Unstructured
	if before != nil {
		old = before.sources[key].object
	}
	if errs := kind.admit(m.object, old); len(errs) > 0 {
		return fieldProblem(m, errs)
	}
	switch key.kind {
	case v1alpha1.KindStorageMux:
		mux := &v1alpha1.StorageMux{}
		mux.UID = uid(key)
		r.muxes[name] = mux
		err = typed(m, mux)
		mux.UID = uid(key)
	case v1alpha1.KindStorageBackend:
		backend := &v1alpha1.StorageBackend{}
		r.backends[name] = backend
		err = typed(m, backend)
		backend.UID = uid(key)
		if file := backend.Spec.File; file != nil && file.Path != "" && err == nil {
			file.Path, err = beside(m, file.Path)
		}
	}
	return err
}

func (r *resources) addCore(m manifest, name types.NamespacedName) error {
	if m.object.GetKind() == "ConfigMap" {
		configMap := &corev1.ConfigMap{}
		r.configMaps[name] = configMap.Data
		if err := typed(m, configMap); err != nil {
			return err
		}
		r.configMaps[name] = configMap.Data
		return nil
	}
	secret := &corev1.Secret{}
	if err := typed(m, secret); err != nil {
		return err
	}
	data := map[string][]byte{}
	maps.Copy(data, secret.Data)
	for key, value := range secret.StringData {
		data[key] = []byte(value)
	}
	r.secrets[name] = render.Secret{Data: data}
	return nil
}

// typed converts m's object. The error of a Secret is not shown, as it could
// quote what it could not read.
func typed(m manifest, into any) error {
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m.object.Object, into, true)
	switch {
	case err == nil:
		return nil
	case m.object.GetKind() == "Secret":
		return problemf(m, "must have values in base64 under data, or text under stringData, and no unknown fields")
	default:
		return problemf(m, "%v", err)
	}
}

// uid is the identity of an object here: its name, so that runtime state stays
// while the manifests change.
func uid(key id) types.UID {
	sum := sha256.Sum256([]byte(key.kind + "/" + key.namespace + "/" + key.name))
	return types.UID(hex.EncodeToString(sum[:16]))
}

// beside makes path, which is relative to m's file, absolute.
func beside(m manifest, path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(m.file), path)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	return absolute, nil
}

// choose returns the mux of that name, NAME or NAMESPACE/NAME. If the name is
// empty it is the only one that runs a proxy, or, of those, the only one that no
// other mux contains.
func (r *resources) choose(name, path string) (types.NamespacedName, error) {
	var fitting []types.NamespacedName
	for key := range r.muxes {
		if name == "" || name == key.Name || name == key.String() {
			fitting = append(fitting, key)
		}
	}
	if name == "" {
		fitting = narrowed(fitting, func(key types.NamespacedName) bool { return render.HasWorkload(r.muxes[key]) })
		nested := r.nested()
		fitting = narrowed(fitting, func(key types.NamespacedName) bool { return !nested[key] })
	}
	slices.SortFunc(fitting, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	var names []string
	for _, key := range fitting {
		names = append(names, key.String())
	}
	switch {
	case len(fitting) == 1:
		return fitting[0], nil
	case len(fitting) > 1:
		return types.NamespacedName{}, &Problem{File: path, Rule: "there are several StorageMuxes; choose one with --mux: " + strings.Join(names, ", ")}
	case name != "":
		return types.NamespacedName{}, &Problem{File: path, Rule: "there is no StorageMux " + name}
	default:
		return types.NamespacedName{}, &Problem{File: path, Rule: "there is no StorageMux"}
	}
}

// narrowed returns those of keys that are so, or all if none is.
func narrowed(keys []types.NamespacedName, is func(types.NamespacedName) bool) []types.NamespacedName {
	some := slices.DeleteFunc(slices.Clone(keys), func(key types.NamespacedName) bool { return !is(key) })
	if len(some) == 0 {
		return keys
	}
	return some
}

// nested are the muxes that another one contains.
func (r *resources) nested() map[types.NamespacedName]bool {
	nested := map[types.NamespacedName]bool{}
	for key, mux := range r.muxes {
		f := render.Facts{Muxes: inNamespace(r.muxes, key.Namespace), Backends: inNamespace(r.backends, key.Namespace)}
		render.EachListed(mux, f.FindMux, f.FindBackend, func(member *muxconfig.Member) bool {
			if member.Mux != "" && member.Mux != key.Name {
				nested[types.NamespacedName{Namespace: key.Namespace, Name: member.Mux}] = true
			}
			return true
		})
	}
	return nested
}

package serve

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// document renders the mux of that key. What a cluster would show as a
// condition is a Problem here.
func (r *resources) document(key types.NamespacedName, material render.Material, revision int64, now time.Time) (*muxconfig.Document, error) {
	result, err := render.Document(render.Facts{
		Mux:           r.muxes[key],
		Muxes:         inNamespace(r.muxes, key.Namespace),
		Backends:      inNamespace(r.backends, key.Namespace),
		Secrets:       inNamespace(r.secrets, key.Namespace),
		ConfigMaps:    inNamespace(r.configMaps, key.Namespace),
		KnownRevision: revision,
		Material:      material,
		Now:           now,
		Standalone:    true,
	})
	if err != nil {
		return nil, err
	}
	source := r.sources[id{v1alpha1.KindStorageMux, key.Namespace, key.Name}]
	for _, verdict := range []render.Verdict{result.Accepted, result.ResolvedRefs} {
		if !verdict.OK {
			return nil, problemf(source, "%s", verdict.Message)
		}
	}
	if result.Document == nil {
		return nil, problemf(source, "%s", "there is nothing to serve")
	}
	return result.Document, nil
}

func inNamespace[T any](all map[types.NamespacedName]T, namespace string) map[string]T {
	some := map[string]T{}
	for key, one := range all {
		if key.Namespace == namespace {
			some[key.Name] = one
		}
	}
	return some
}

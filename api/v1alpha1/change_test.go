package v1alpha1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func manifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	obj := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &obj.Object); err != nil {
		t.Fatalf("reading a manifest: %v", err)
	}
	return obj
}

// What a StorageBackend holds cannot change (the samples under invalid/backend-changed-*); how it is reached can.
func TestBackendMayChangeHowItsStoreIsReached(t *testing.T) {
	const head = "apiVersion: storagemux.dev/v1alpha1\nkind: StorageBackend\nmetadata: {name: primary}\n"
	for name, change := range map[string]struct{ before, after string }{
		"s3": {
			"spec: {s3: {endpoint: 'https://a.example.com', bucket: assets, auth: {secretRef: {name: a}}}}",
			"spec: {s3: {endpoint: 'https://b.example.com', region: eu-west-1, bucket: assets, addressingStyle: Path, auth: {type: Ambient}, caBundleRef: {name: ca}}, timeout: 5s, healthCheck: {}}",
		},
		"s3, an empty prefix is none": {
			"spec: {s3: {region: eu-west-1, bucket: assets, auth: {type: Ambient}}}",
			"spec: {s3: {region: eu-west-1, bucket: assets, prefix: '', auth: {type: Ambient}}}",
		},
		"http": {
			"spec: {http: {url: 'https://dav.example.com/a/'}}",
			"spec: {http: {url: 'https://dav.example.com/a/', flavor: Plain, auth: {secretRef: {name: a}}}}",
		},
		"memory": {"spec: {memory: {}}", "spec: {memory: {sizeLimit: 1Gi}, maxInFlight: 8}"},
		"swift": {
			"spec: {swift: {authURL: 'https://a.example.com/v3', container: a, auth: {secretRef: {name: a}}}}",
			"spec: {swift: {authURL: 'https://b.example.com/v3', container: a, auth: {secretRef: {name: b}}}}",
		},
		"fallback": {
			"spec: {fallback: {uri: 'fallback://?u=backend%3A%2F%2Fa%2F'}}",
			"spec: {fallback: {uri: 'fallback://?u=backend%3A%2F%2Fb%2F', policy: {walk: parallel}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newSchemaServer(t)
			for _, spec := range []string{change.before, change.after} {
				if lines := server.put(t.Context(), t, manifest(t, head+spec)); len(lines) > 0 {
					t.Errorf("%s was refused: %v", spec, lines)
				}
			}
		})
	}
}

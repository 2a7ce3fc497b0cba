package v1alpha1_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

const samplesFolder = "../../config/samples"

// putter is an API server that the samples are given to.
type putter interface {
	// put creates or replaces an object and returns what the server objects to, a line each.
	put(ctx context.Context, t *testing.T, obj *unstructured.Unstructured) []string
}

// sample is one manifest: its objects in order, and for an invalid one what the server must say of the last of them.
type sample struct {
	name    string
	objects []*unstructured.Unstructured
	refused []string
}

// refusedPrefix begins each comment line of an invalid sample that holds a line of the server's answer.
const refusedPrefix = "# refused: "

func loadSamples(t *testing.T, folder string) []sample {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var samples []sample
	for _, path := range paths {
		if filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s := sample{name: strings.TrimSuffix(filepath.Base(path), ".yaml")}
		for line := range strings.Lines(string(data)) {
			if text, found := strings.CutPrefix(line, refusedPrefix); found {
				s.refused = append(s.refused, strings.TrimSpace(text))
			}
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(string(data)), 4096)
		for {
			obj := &unstructured.Unstructured{}
			if err := decoder.Decode(obj); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("reading %s: %v", path, err)
			}
			if obj.Object != nil {
				s.objects = append(s.objects, obj)
			}
		}
		if len(s.objects) == 0 {
			t.Fatalf("%s holds no object", path)
		}
		samples = append(samples, s)
	}
	if len(samples) == 0 {
		t.Fatalf("no sample in %s", folder)
	}
	return samples
}

// checkSamples gives every sample to a server: each valid one is taken as a whole, of each invalid one the last object is
// refused with exactly the lines that the file names. emptied returns the server without what earlier samples left.
func checkSamples(t *testing.T, emptied func(t *testing.T) putter) {
	for _, s := range loadSamples(t, samplesFolder) {
		t.Run("valid/"+s.name, func(t *testing.T) {
			server := emptied(t)
			for _, obj := range s.objects {
				if lines := server.put(t.Context(), t, obj); len(lines) > 0 {
					t.Errorf("%s %s was refused:\n  %s", obj.GetKind(), obj.GetName(), strings.Join(lines, "\n  "))
				}
			}
		})
	}
	for _, s := range loadSamples(t, filepath.Join(samplesFolder, "invalid")) {
		t.Run("invalid/"+s.name, func(t *testing.T) {
			server := emptied(t)
			last := len(s.objects) - 1
			for _, obj := range s.objects[:last] {
				if lines := server.put(t.Context(), t, obj); len(lines) > 0 {
					t.Fatalf("%s %s, which goes before, was refused:\n  %s", obj.GetKind(), obj.GetName(), strings.Join(lines, "\n  "))
				}
			}
			lines := server.put(t.Context(), t, s.objects[last])
			if len(s.refused) == 0 {
				t.Fatalf("the file has no line %q; the server said:\n  %s", refusedPrefix, strings.Join(lines, "\n  "))
			}
			slices.Sort(lines)
			slices.Sort(s.refused)
			if !slices.Equal(lines, s.refused) {
				t.Errorf("the server said:\n  %s\nthe file says:\n  %s", strings.Join(lines, "\n  "), strings.Join(s.refused, "\n  "))
			}
		})
	}
}

func TestSchemaLibrariesTakeValidSamplesAndRefuseInvalidOnes(t *testing.T) {
	server := newSchemaServer(t)
	checkSamples(t, func(*testing.T) putter {
		clear(server.stored)
		return server
	})
}

package serve

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// maxManifestBytes bounds what is read of one file.
const maxManifestBytes = 16 << 20

// manifest is one object and the file that it stands in.
type manifest struct {
	file   string
	object *unstructured.Unstructured
}

func (m manifest) String() string {
	if m.object == nil {
		return ""
	}
	return strings.TrimSpace(m.object.GetKind() + " " + m.object.GetName())
}

// file is a file of manifests as it was read.
type file struct {
	name string
	data []byte
}

// readFiles reads the manifests at path: one file, or the files of a folder
// that end in .yaml, .yml or .json, without those below it.
func readFiles(path string) ([]file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, &Problem{File: path, Rule: plain(err)}
	}
	names := []string{path}
	if info.IsDir() {
		if names, err = manifestsIn(path); err != nil {
			return nil, &Problem{File: path, Rule: plain(err)}
		}
	}
	var files []file
	for _, name := range names {
		data, err := readFile(name)
		if errors.Is(err, os.ErrNotExist) && info.IsDir() {
			continue // it went away since the folder was read
		}
		if err != nil {
			return nil, &Problem{File: name, Rule: plain(err)}
		}
		files = append(files, file{name, data})
	}
	return files, nil
}

func manifestsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		name := entry.Name()
		known := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
		if !known || strings.HasPrefix(name, ".") {
			continue
		}
		path := filepath.Join(dir, name)
		// A link counts as what it points to: mounted ConfigMaps are links.
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			names = append(names, path)
		}
	}
	return names, nil
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err == nil && len(data) > maxManifestBytes {
		err = fmt.Errorf("must have at most %d bytes", maxManifestBytes)
	}
	return data, err
}

// plain drops the path from an error, where the line names it already.
func plain(err error) string {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return pathError.Op + ": " + pathError.Err.Error()
	}
	return err.Error()
}

// parse returns the objects in f, those of lists included.
func parse(f file) ([]manifest, error) {
	var found []manifest
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(f.data)))
	for index := 1; ; index++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, &Problem{File: f.name, Rule: err.Error()}
		}
		// Kubernetes' own decoder tells whole numbers from others, which the
		// rules of the schema do too.
		var content map[string]any
		text, err := yaml.YAMLToJSONStrict(document)
		if err == nil {
			err = utiljson.Unmarshal(text, &content)
		}
		if err != nil {
			return nil, &Problem{File: f.name, Object: fmt.Sprintf("document %d", index), Rule: yamlRule(err)}
		}
		if len(content) == 0 {
			continue
		}
		more, err := objects(f.name, content)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
}

// objects unpacks a List.
func objects(name string, content map[string]any) ([]manifest, error) {
	object := &unstructured.Unstructured{Object: content}
	m := manifest{name, object}
	if object.GetKind() == "" || object.GetAPIVersion() == "" {
		return nil, problemf(m, "apiVersion and kind must be set")
	}
	if object.GetKind() != "List" {
		return []manifest{m}, nil
	}
	items, _, err := unstructured.NestedSlice(content, "items")
	if err != nil {
		return nil, problemf(m, "items must be a list of objects")
	}
	var found []manifest
	for _, item := range items {
		content, ok := item.(map[string]any)
		if !ok {
			return nil, problemf(m, "items must be a list of objects")
		}
		more, err := objects(name, content)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// yamlRule shortens the prefixes that a YAML error has gathered.
func yamlRule(err error) string {
	text := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return cmp.Or(text, "must be YAML")
}

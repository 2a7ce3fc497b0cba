package serve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// good is a mux over a folder and a memory store, in one file.
const good = `
apiVersion: storagemux.dev/v1alpha1
kind: StorageBackend
metadata: {name: disk}
spec: {file: {path: ./data}}
---
apiVersion: storagemux.dev/v1alpha1
kind: StorageBackend
metadata: {name: memory}
spec: {memory: {sizeLimit: 16Mi}}
---
apiVersion: v1
kind: Secret
metadata: {name: front}
stringData: {AWS_ACCESS_KEY_ID: AKIDFRONT, AWS_SECRET_ACCESS_KEY: front-secret}
---
apiVersion: storagemux.dev/v1alpha1
kind: StorageMux
metadata: {name: assets}
spec:
  mode: failover
  keyspace: replicated
  backends: [{name: disk}, {name: memory}]
  frontend: {auth: {type: SigV4, secretRefs: [{name: front}]}}
`

func writeManifest(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path+"~", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

// renderDir loads and renders what dir holds.
func renderDir(t *testing.T, dir, mux string) (*muxconfig.Document, error) {
	t.Helper()
	files, err := readFiles(dir)
	if err != nil {
		return nil, err
	}
	r, err := load(files, nil)
	if err != nil {
		return nil, err
	}
	key, err := r.choose(mux, dir)
	if err != nil {
		return nil, err
	}
	admin, err := muxconfig.NewAdmin(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return r.document(key, render.Material{Admin: admin, Keys: muxconfig.Keys{Current: muxconfig.NewSealingKey()}}, 0, time.Now())
}

func TestManifestsBecomeADocumentWithTheDefaultsOfTheDefinitions(t *testing.T) {
	dir := t.TempDir()
	writeManifest(t, dir, "all.yaml", good)
	writeManifest(t, dir, "other.yml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {whatever: true}\n")
	writeManifest(t, dir, ".hidden.yaml", "{")
	writeManifest(t, dir, "README.md", "# no manifest")
	d, err := renderDir(t, dir, "")
	if err != nil {
		t.Fatal(err)
	}
	disk, memory := d.Backend("disk"), d.Backend("memory")
	if disk.File.Path != filepath.Join(dir, "data") {
		t.Errorf("the path became %q", disk.File.Path)
	}
	if disk.MaxInFlight != 512 || memory.Memory.SizeLimit != 16<<20 || disk.UID == memory.UID || disk.UID == "" {
		t.Errorf("the backends are %+v and %+v", *disk.File, *memory.Memory)
	}
	root := d.Mux(d.Root)
	if root.BackendTimeout.Std() != 30*time.Second || root.Health.WhenAllDown != "Try" || d.Frontend.Bucket != "assets" {
		t.Errorf("the mux is %+v", root)
	}
	if pair := d.Frontend.KeyPairs[0]; pair.AccessKeyID != "AKIDFRONT" || pair.SecretAccessKey.Reveal() != "front-secret" {
		t.Errorf("the keys are %v", d.Frontend.KeyPairs)
	}
}

func TestEveryModeIsServed(t *testing.T) {
	for mode, text := range map[string]string{
		"failover":      good,
		"round-robin":   strings.Replace(good, "mode: failover", "mode: round-robin", 1),
		"weighted":      strings.NewReplacer("mode: failover", "mode: weighted", "{name: disk}, {name: memory}]", "{name: disk, weight: 3}, {name: memory, weight: 0}]").Replace(good),
		"sticky-by-key": strings.Replace(good, "mode: failover\n  keyspace: replicated", "mode: sticky-by-key\n  keyspace: spread\n  sticky: {hash: rendezvous}", 1),
		"shield":        strings.Replace(good, "mode: failover", "mode: shield\n  onFanoutPartial: Fail", 1),
		"mirror":        strings.Replace(good, "mode: failover", "mode: mirror", 1),
	} {
		dir := t.TempDir()
		writeManifest(t, dir, "all.yaml", text)
		d, err := renderDir(t, dir, "")
		if err != nil {
			t.Errorf("%s: %v", mode, err)
			continue
		}
		if root := d.Mux(d.Root); root.Mode != mode {
			t.Errorf("%s became %s", mode, root.Mode)
		}
	}
}

func TestTheMuxThatNobodyElseContainsIsServed(t *testing.T) {
	mux := good[strings.LastIndex(good, "---\n"):]
	named := func(name, members, proxy string) string {
		return strings.NewReplacer("name: assets", "name: "+name, "[{name: disk}, {name: memory}]", members,
			"mode: failover", "mode: failover\n  proxy: {type: "+proxy+"}").Replace(mux)
	}
	within := func(name string) string {
		return "[{name: disk}, {name: nest, ref: {kind: StorageMux, name: " + name + "}}]"
	}
	ladder := "---\napiVersion: storagemux.dev/v1alpha1\nkind: StorageBackend\nmetadata: {name: ladder}\nspec: {fallback: {uri: 'fallback://?u=mux%3A%2F%2Fbelow%2F'}}\n"
	leaves := "[{name: memory}]"
	stores := good[:strings.LastIndex(good, "---\n")]
	for _, tt := range []struct{ name, manifests, want string }{
		{"the only one with a proxy, beside one in it", named("top", within("below"), "Deployment") + named("below", leaves, "None"), "top"},
		{"the only one with a proxy, beside one of its own", named("top", leaves, "Deployment") + named("aside", leaves, "None"), "top"},
		{"one with a proxy, in one without", named("top", within("below"), "None") + named("below", leaves, "Deployment"), "below"},
		{"the outermost of three with proxies", named("b", within("c"), "Deployment") + named("a", within("b"), "Deployment") + named("c", leaves, "Deployment"), "a"},
		{"one that contains the other by a fallback URI", named("top", "[{name: ladder}]", "Deployment") + ladder + named("below", leaves, "Deployment"), "top"},
		{"none with a proxy", named("top", within("below"), "None") + named("below", leaves, "None"), "top"},
		{"two that contain each other", named("a", within("b"), "Deployment") + named("b", within("a"), "Deployment"), ""},
		{"two with a proxy", named("a", leaves, "Deployment") + named("b", leaves, "Deployment") + named("c", leaves, "None"), ""},
	} {
		dir := t.TempDir()
		writeManifest(t, dir, "all.yaml", stores+tt.manifests)
		files, err := readFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		r, err := load(files, nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		switch key, err := r.choose("", dir); {
		case tt.want == "" && (err == nil || !strings.Contains(err.Error(), "choose one with --mux: default/a, default/b")):
			t.Errorf("%s: chose %s (%v), want a question", tt.name, key, err)
		case tt.want != "" && (err != nil || key.Name != tt.want):
			t.Errorf("%s: chose %s (%v), want %s", tt.name, key, err, tt.want)
		}
	}
}

func TestAListIsUnpacked(t *testing.T) {
	dir := t.TempDir()
	var items strings.Builder
	for _, document := range strings.Split(good, "---\n") {
		items.WriteString("- " + strings.ReplaceAll(strings.TrimSpace(document), "\n", "\n  ") + "\n")
	}
	writeManifest(t, dir, "list.yaml", "apiVersion: v1\nkind: List\nitems:\n"+items.String())
	if d, err := renderDir(t, dir, ""); err != nil || len(d.Backends) != 2 {
		t.Errorf("the list gave %v, %v", d, err)
	}
}

func TestInvalidManifestsAreNamedInOneLine(t *testing.T) {
	replaced := func(old, new string) map[string]string {
		if !strings.Contains(good, old) {
			t.Fatalf("the manifest has no %q", old)
		}
		return map[string]string{"all.yaml": strings.Replace(good, old, new, 1)}
	}
	second := strings.ReplaceAll(good[strings.LastIndex(good, "---\n"):], "name: assets", "name: more")
	tests := []struct {
		name  string
		files map[string]string
		mux   string
		want  []string // all in the line
	}{
		{"nothing there", map[string]string{}, "", []string{"there is no StorageMux"}},
		{"no YAML", map[string]string{"all.yaml": good, "bad.yaml": "a: [b"}, "", []string{"bad.yaml: document 1: line 1: did not find"}},
		{"a key twice", replaced("mode: failover", "mode: failover\n  mode: mirror"), "", []string{`all.yaml: document 4: `, `key "mode" already set`}},
		{"no kind", map[string]string{"all.yaml": good, "bad.yaml": "metadata: {name: x}"}, "", []string{"bad.yaml: x: apiVersion and kind must be set"}},
		{"an unknown kind of ours", replaced("kind: StorageMux", "kind: StorageMuxx"), "", []string{"all.yaml: StorageMuxx assets: no such kind in storagemux.dev; there are StorageBackend and StorageMux in version v1alpha1"}},
		{"an unknown version of ours", replaced("storagemux.dev/v1alpha1\nkind: StorageMux", "storagemux.dev/v1\nkind: StorageMux"), "", []string{"all.yaml: StorageMux assets: no such kind"}},
		{"the same object twice", map[string]string{"all.yaml": good, "b.yaml": second + strings.ReplaceAll(second, "x", "x")}, "", []string{"b.yaml: StorageMux more: ", "b.yaml holds an object of this name too"}},
		{"an unknown field", replaced("sizeLimit: 16Mi", "size: 16Mi"), "", []string{"all.yaml: StorageBackend memory: spec.memory.size: ", "no such field"}},
		{"no name", replaced("{name: assets}", "{}"), "", []string{"all.yaml: StorageMux: metadata.name: "}},
		{"an unknown mode", replaced("mode: failover", "mode: random"), "", []string{"all.yaml: StorageMux assets: spec.mode: Unsupported value: \"random\""}},
		{"no keyspace", replaced("keyspace: replicated\n", "\n"), "", []string{"all.yaml: StorageMux assets: spec.keyspace: Required value"}},
		{"no backends", replaced("[{name: disk}, {name: memory}]", "[]"), "", []string{"all.yaml: StorageMux assets: spec.backends: "}},
		{"a member twice", replaced("{name: memory}]", "{name: disk}]"), "", []string{"all.yaml: StorageMux assets: spec.backends[1]: Duplicate value"}},
		{"spread with round-robin", replaced("mode: failover\n  keyspace: replicated", "mode: round-robin\n  keyspace: spread"), "", []string{"all.yaml: StorageMux assets: spec", "must"}},
		{"two types", replaced("{memory: {sizeLimit: 16Mi}}", "{memory: {sizeLimit: 16Mi}, file: {path: x}}"), "", []string{"all.yaml: StorageBackend memory: spec: exactly one of s3, http, file"}},
		{"a claim", replaced("{path: ./data}", "{persistentVolumeClaim: {claimName: data}}"), "", []string{"spec.file.path must be set outside a cluster"}},
		{"a name too long", replaced("{name: assets}", "{name: "+strings.Repeat("a", 41)+"}"), "", []string{"all.yaml: StorageMux aaaa", "40"}},
		{"a reference to nothing", replaced("{name: memory}]", "{name: gone}]"), "", []string{"all.yaml: StorageMux assets: spec.backends[gone]: no StorageBackend is named gone"}},
		{"a mux that contains itself", replaced("{name: memory}]", "{name: self, ref: {kind: StorageMux, name: assets}}]"), "", []string{"all.yaml: StorageMux assets: spec.backends: backends must not contain the StorageMux itself"}},
		{"a missing Secret", replaced("metadata: {name: front}", "metadata: {name: other}"), "", []string{"all.yaml: StorageMux assets: spec.frontend.auth.secretRefs[0]: no Secret is named front"}},
		{"a Secret without its keys", replaced("AWS_ACCESS_KEY_ID: AKIDFRONT, ", ""), "", []string{"all.yaml: StorageMux assets: spec.frontend.auth.secretRefs[0]: Secret front must have a value under key AWS_ACCESS_KEY_ID"}},
		{"a Secret in no base64", replaced("stringData: {AWS_ACCESS_KEY_ID: AKIDFRONT,", "data: {AWS_ACCESS_KEY_ID: '!',"), "", []string{"all.yaml: Secret front: must have values in base64"}},
		{"SigV4 without Secrets", replaced(", secretRefs: [{name: front}]", ""), "", []string{"all.yaml: StorageMux assets: spec.frontend.auth.secretRefs must name a Secret"}},
		{"two muxes and no choice", map[string]string{"all.yaml": good, "more.yaml": second}, "", []string{"there are several StorageMuxes; choose one with --mux: default/assets, default/more"}},
		{"a choice that is not there", map[string]string{"all.yaml": good}, "gone", []string{"there is no StorageMux gone"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range tt.files {
				writeManifest(t, dir, name, content)
			}
			_, err := renderDir(t, dir, tt.mux)
			var problem *Problem
			if !errors.As(err, &problem) || problem.ExitCode() != 2 {
				t.Fatalf("the error is %v", err)
			}
			line := err.Error()
			if strings.Contains(line, "\n") || strings.Contains(line, "front-secret") {
				t.Errorf("the line is %q", line)
			}
			for _, want := range tt.want {
				if !strings.Contains(line, want) {
					t.Errorf("the line lacks %q:\n%s", want, line)
				}
			}
		})
	}
}

func TestOfSeveralMuxesOneIsChosenByName(t *testing.T) {
	dir := t.TempDir()
	writeManifest(t, dir, "all.yaml", good)
	writeManifest(t, dir, "more.yaml", strings.ReplaceAll(good[strings.LastIndex(good, "---\n"):], "name: assets", "name: more"))
	for _, name := range []string{"more", "default/more"} {
		if d, err := renderDir(t, dir, name); err != nil || d.Root != "more" {
			t.Errorf("--mux %s gave %v, %v", name, d, err)
		}
	}
}

func TestAMissingPathIsAProblem(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "gone"), filepath.Join(t.TempDir(), "gone.yaml")} {
		_, err := readFiles(path)
		var problem *Problem
		if !errors.As(err, &problem) || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s gave %v", path, err)
		}
	}
}

func TestTheAdminPortStaysOnLoopback(t *testing.T) {
	for address, ok := range map[string]bool{
		"127.0.0.1:9090": true, "[::1]:0": true, "localhost:1": true,
		":9090": false, "0.0.0.0:9090": false, "10.0.0.1:1": false, "127.0.0.1": false, "example.com:1": false,
	} {
		if err := loopback(address); (err == nil) != ok {
			t.Errorf("%s gave %v", address, err)
		}
	}
}

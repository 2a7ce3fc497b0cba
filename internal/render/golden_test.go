package render

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden renders testdata/CASE/STEP.yaml, in the order of steps, and
// compares what comes out with testdata/CASE/STEP.out.yaml. Each step starts
// with the document of the one before, and all proxies that a step lists as
// {pod: NAME} serve that document; members maps a path to its report.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	stored := map[string]*muxconfig.Document{}
	for _, input := range inputs {
		if strings.HasSuffix(input, ".out.yaml") {
			continue
		}
		dir := filepath.Dir(input)
		t.Run(filepath.Base(dir)+"/"+strings.TrimSuffix(filepath.Base(input), ".yaml"), func(t *testing.T) {
			facts := readFacts(t, input, stored[dir])
			result, err := Document(facts)
			if err != nil {
				t.Fatal(err)
			}
			got := outcome(t, facts, result)
			if again, err := Document(facts); err != nil || !bytes.Equal(got, outcome(t, facts, again)) {
				t.Fatalf("a second rendering of the same facts differs (error %v)", err)
			}
			stored[dir] = result.Document
			compareGolden(t, strings.TrimSuffix(input, ".yaml")+".out.yaml", got)
		})
	}
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatalf("%v; go test ./internal/render -update writes it", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what is rendered now; go test ./internal/render -update, then read the diff:\n%s", name, got)
	}
}

// outcome is what the golden file shows: the verdicts, the drains, the
// document, and the children unless the step says nothing changed.
func outcome(t *testing.T, f Facts, r Result) []byte {
	t.Helper()
	type child struct {
		Kind, Name string
		Apply      any
	}
	out := struct {
		Accepted, ResolvedRefs Verdict
		TooOld                 *Verdict            `json:",omitempty"`
		Drains                 []Drain             `json:",omitempty"`
		Unchanged              bool                `json:",omitempty"`
		Document               *muxconfig.Document `json:",omitempty"`
		Children               []child             `json:",omitempty"`
	}{Accepted: r.Accepted, ResolvedRefs: r.ResolvedRefs, TooOld: r.TooOld, Drains: r.Drains}
	if r.Document != nil && r.Document == f.Stored {
		out.Unchanged = true
	} else if r.Document != nil {
		out.Document = r.Document
	}
	if f.Stored == nil && r.Document != nil {
		for _, c := range Children(f, r.Document, Options{ProxyImage: "example.com/storagemux:v1", OperatorNamespace: "storagemux-system"}) {
			out.Children = append(out.Children, child{c.Kind, c.Name, c.Apply})
		}
	}
	data, err := sigsyaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var goldenMaterial = Material{
	Admin: muxconfig.Admin{Token: "admin-token", TLS: muxconfig.KeyCert{Cert: "admin-cert", Key: "admin-key"}},
	Keys:  muxconfig.Keys{Current: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
	Client: muxconfig.KeyPair{
		AccessKeyID: "generated-id", SecretAccessKey: "generated-key",
	},
}

func readFacts(t *testing.T, input string, stored *muxconfig.Document) Facts {
	t.Helper()
	f := Facts{
		Muxes: map[string]*v1alpha1.StorageMux{}, Backends: map[string]*v1alpha1.StorageBackend{}, Secrets: map[string]Secret{},
		ConfigMaps: map[string]map[string]string{}, Claims: map[string]Claim{},
		Stored: stored, Material: goldenMaterial, Now: time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC),
	}
	data, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range bytes.Split(data, []byte("\n---\n")) {
		var head struct{ Kind string }
		decode(t, text, &head)
		switch head.Kind {
		case "StorageMux":
			// The first is the one that is rendered.
			m := &v1alpha1.StorageMux{}
			decode(t, text, m)
			m.Namespace, m.UID = "team", types.UID("uid-"+m.Name)
			if m.Finalizers == nil {
				m.Finalizers = []string{v1alpha1.FinalizerDrain}
			}
			if f.Mux == nil {
				f.Mux = m
			} else {
				f.Muxes[m.Name] = m
			}
		case "StorageBackend":
			b := &v1alpha1.StorageBackend{}
			decode(t, text, b)
			if b.UID == "" {
				b.UID = types.UID("uid-" + b.Name)
			}
			if b.Finalizers == nil {
				b.Finalizers = []string{v1alpha1.FinalizerDrain}
			}
			f.Backends[b.Name] = b
		case "Secret":
			s := &corev1.Secret{}
			decode(t, text, s)
			data := map[string][]byte{}
			for key, value := range s.StringData {
				data[key] = []byte(value)
			}
			f.Secrets[s.Name] = Secret{Data: data, Refused: s.Labels["refused"] != ""}
		case "ConfigMap":
			c := &corev1.ConfigMap{}
			decode(t, text, c)
			f.ConfigMaps[c.Name] = c.Data
		case "PersistentVolumeClaim":
			c := &corev1.PersistentVolumeClaim{}
			decode(t, text, c)
			f.Claims[c.Name] = Claim{SingleNode: c.Spec.AccessModes[0] == corev1.ReadWriteOnce}
		case "Proxies":
			f.Proxies = append(f.Proxies, readProxies(t, text, stored)...)
		default:
			t.Fatalf("%s: kind %q is not read", input, head.Kind)
		}
	}
	return f
}

func readProxies(t *testing.T, text []byte, stored *muxconfig.Document) []Proxy {
	t.Helper()
	var in struct {
		Items []struct {
			Pod    string
			Behind bool
			// Schema is the newest that the proxy reads, by default this build's.
			Schema  int
			Members map[string]muxconfig.MemberReport
		}
	}
	decode(t, text, &in)
	var proxies []Proxy
	for _, item := range in.Items {
		report := &muxconfig.Report{MaxSchema: cmp.Or(item.Schema, muxconfig.SchemaVersion), Applied: &muxconfig.Applied{Revision: stored.Revision, Hash: stored.Hash}}
		if item.Behind {
			report.Applied = &muxconfig.Applied{Revision: stored.Revision - 1, Hash: "older"}
		}
		for path, m := range item.Members {
			m.Path = path
			report.Members = append(report.Members, m)
		}
		proxies = append(proxies, Proxy{Pod: item.Pod, Running: true, Ready: true, Report: report})
	}
	return proxies
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	data, err := yaml.ToJSON(text)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("%w in:\n%s", err, text))
	}
}

func TestALaterLeadersDocumentIsNeverReplaced(t *testing.T) {
	f := readFacts(t, "testdata/drain-replicated/1.yaml", nil)
	first, err := Document(f)
	if err != nil {
		t.Fatal(err)
	}
	f.Stored = first.Document
	f.Stored.Transitions = 4
	f.Transitions = 3
	if _, err := Document(f); err == nil || err.Error() != ErrDeposed.Error() {
		t.Fatalf("error is %v, want %v", err, ErrDeposed)
	}
}

func TestRevisionsRiseAboveWhatIsKnown(t *testing.T) {
	f := readFacts(t, "testdata/drain-replicated/1.yaml", nil)
	f.KnownRevision = 41
	result, err := Document(f)
	if err != nil || result.Document.Revision != 42 {
		t.Fatalf("revision is %d, error %v; want 42", result.Document.Revision, err)
	}
}

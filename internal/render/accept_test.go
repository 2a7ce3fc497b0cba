package render

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// specs makes the facts of muxes written as "root: member member; other: ...",
// where a member that is a mux of the text nests it.
func specs(text string) Facts {
	f := Facts{Muxes: map[string]*v1alpha1.StorageMux{}, Backends: map[string]*v1alpha1.StorageBackend{}}
	lines := strings.Split(text, ";")
	known := map[string]bool{}
	for _, line := range lines {
		name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		known[name] = true
	}
	for i, line := range lines {
		name, members, _ := strings.Cut(strings.TrimSpace(line), ":")
		m := &v1alpha1.StorageMux{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
			Spec:       v1alpha1.StorageMuxSpec{Mode: v1alpha1.ModeFailover, Keyspace: v1alpha1.KeyspaceReplicated},
		}
		for n, target := range strings.Fields(members) {
			member := v1alpha1.Member{Name: fmt.Sprintf("%s-%d", target, n), Ref: &v1alpha1.MemberReference{Name: target}}
			if known[target] {
				member.Ref.Kind = v1alpha1.MemberKindStorageMux
			}
			m.Spec.Backends = append(m.Spec.Backends, member)
		}
		if i == 0 {
			f.Mux = m
		} else {
			f.Muxes[name] = m
		}
	}
	return f
}

func TestATopologyIsRefusedForWhatNoDocumentCanHold(t *testing.T) {
	chain := func(levels int) string {
		var text []string
		for i := 1; i < levels; i++ {
			text = append(text, fmt.Sprintf("m%d: m%d", i, i+1))
		}
		return strings.Join(append(text, fmt.Sprintf("m%d: leaf", levels)), ";")
	}
	// Each of the root's members is a mux of that many leaves.
	wide := func(muxes, leaves int) string {
		return "root:" + strings.Repeat(" inner", muxes) + "; inner:" + strings.Repeat(" leaf", leaves)
	}
	for name, c := range map[string]struct{ specs, reason, message string }{
		"leaves alone":              {"root: a b", "", ""},
		"as deep as may be":         {chain(muxconfig.MaxDepth), "", ""},
		"one level deeper":          {chain(muxconfig.MaxDepth + 1), v1alpha1.ReasonTooDeep, "m1 -> m2 -> m3 -> m4 -> m5 -> m6 -> m7 -> m8 -> m9"},
		"itself":                    {"root: root", v1alpha1.ReasonCycle, "root -> root"},
		"itself through others":     {"root: a x; x: y; y: root", v1alpha1.ReasonCycle, "root -> x -> y -> root"},
		"a cycle below":             {"root: x; x: y; y: x", v1alpha1.ReasonCycle, "root -> x -> y -> x"},
		"the same mux twice":        {"root: x y; x: z; y: z; z: a", "", ""},
		"as many members as may be": {wide(4, 63), "", ""},
		"one more":                  {"root: a" + wide(4, 63)[len("root:"):], v1alpha1.ReasonTooManyMembers, "at most 256"},
		"very many":                 {wide(64, 64), v1alpha1.ReasonTooManyMembers, "at most 256"},
	} {
		t.Run(name, func(t *testing.T) {
			v := AcceptMux(specs(c.specs))
			if v.OK != (c.reason == "") || !v.OK && v.Reason != c.reason || !strings.Contains(v.Message, c.message) {
				t.Errorf("got %+v, want reason %q and message %q", v, c.reason, c.message)
			}
		})
	}
}

func TestAMuxThatIsDeletedCountsOnlyWhileProxiesHaveIt(t *testing.T) {
	f := specs("root: x; x: root")
	now := metav1.Now()
	f.Muxes["x"].DeletionTimestamp = &now
	if v := AcceptMux(f); !v.OK {
		t.Errorf("refused for a mux that is not rendered any more: %+v", v)
	}
	f.Stored = &muxconfig.Document{Root: "root", Muxes: []muxconfig.Mux{{Name: "x", UID: "uid-x"}}}
	if v := AcceptMux(f); v.OK || v.Reason != v1alpha1.ReasonCycle {
		t.Errorf("accepted although proxies still have it: %+v", v)
	}
}

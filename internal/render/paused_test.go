package render

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// nestedFacts are assets, with a and pair, which has b and c, and the document
// that a first rendering of that gave.
func nestedFacts(t *testing.T) Facts {
	t.Helper()
	f := readFacts(t, "testdata/nested-drain/1.yaml", nil)
	first, err := Document(f)
	if err != nil || first.Document == nil {
		t.Fatalf("the first rendering gave %+v, %v", first, err)
	}
	f.Stored = first.Document
	f.Proxies = []Proxy{{Pod: "p1", Running: true, Ready: true, Report: &muxconfig.Report{
		MaxSchema: muxconfig.SchemaVersion, Applied: &muxconfig.Applied{Revision: f.Stored.Revision, Hash: f.Stored.Hash},
		Members: []muxconfig.MemberReport{up("a"), up("pair"), up("pair/b"), up("pair/c")},
	}}}
	return f
}

func pause(o metav1.Object) { annotate(o, v1alpha1.AnnotationPaused) }

func annotate(o metav1.Object, name string) {
	annotations := map[string]string{name: v1alpha1.AnnotationTrue}
	for key, value := range o.GetAnnotations() {
		annotations[key] = value
	}
	o.SetAnnotations(annotations)
}

func remove(f Facts, o metav1.Object) {
	now := metav1.NewTime(f.Now)
	o.SetDeletionTimestamp(&now)
}

func TestANestedMuxThatIsPausedStaysAsItIsServed(t *testing.T) {
	edited := func(f Facts) {
		spec := &f.Muxes["pair"].Spec
		spec.Mode, spec.BackendTimeout = v1alpha1.ModeRoundRobin, "7s"
		spec.Backends = []v1alpha1.Member{{Name: "c"}}
	}
	for name, test := range map[string]struct {
		change func(Facts)
		// still: the document stays; otherwise all of it but pair may change.
		still bool
		// blocked is the member that does not drain, and because why.
		blocked, because string
	}{
		"its spec is edited": {change: edited, still: true},
		"its spec is edited so that it contains itself": {still: true, change: func(f Facts) {
			f.Muxes["pair"].Spec.Backends[0] = v1alpha1.Member{Name: "up", Ref: &v1alpha1.MemberReference{Kind: v1alpha1.MemberKindStorageMux, Name: "assets"}}
		}},
		"what contains it is edited too": {change: func(f Facts) {
			edited(f)
			f.Mux.Spec.BackendTimeout = "9s"
		}},
		"a backend in it is deleted": {still: true, blocked: "b", because: "StorageMux pair is paused", change: func(f Facts) {
			remove(f, f.Backends["b"])
		}},
		"it is deleted itself": {still: true, blocked: "pair", because: "StorageMux pair is paused", change: func(f Facts) {
			remove(f, f.Muxes["pair"])
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := nestedFacts(t)
			pause(f.Muxes["pair"])
			test.change(f)
			result, err := Document(f)
			if err != nil || !result.Accepted.OK {
				t.Fatalf("result %+v, error %v", result.Accepted, err)
			}
			if !reflect.DeepEqual(result.Document.Mux("pair"), f.Stored.Mux("pair")) {
				t.Errorf("pair became %+v", result.Document.Mux("pair"))
			}
			if test.still != (result.Document == f.Stored) {
				t.Errorf("the document stayed: %t, want %t", result.Document == f.Stored, test.still)
			}
			checkBlocked(t, result.Drains, test.blocked, test.because)

			delete(f.Muxes["pair"].Annotations, v1alpha1.AnnotationPaused)
			if result, err := Document(f); err != nil || result.Accepted.OK && result.Document == f.Stored {
				t.Errorf("after the pause nothing changed (%v)", err)
			}
		})
	}
}

func TestABackendThatIsPausedStaysAsItIsServed(t *testing.T) {
	f := nestedFacts(t)
	limit := int32(3)
	f.Backends["b"].Spec.MaxInFlight = &limit
	pause(f.Backends["b"])
	if result, err := Document(f); err != nil || result.Document != f.Stored {
		t.Fatalf("a paused backend that was edited changed the document: %+v, %v", result.Document, err)
	}
	remove(f, f.Backends["b"])
	result, err := Document(f)
	if err != nil || result.Document != f.Stored {
		t.Fatalf("a paused backend that was deleted changed the document: %+v, %v", result.Document, err)
	}
	checkBlocked(t, result.Drains, "b", "StorageBackend b is paused")
	delete(f.Backends["b"].Annotations, v1alpha1.AnnotationPaused)
	if result, err := Document(f); err != nil || result.Document.Mux("pair").Members[0].Drain == nil {
		t.Fatalf("after the pause it does not drain: %+v, %v", result.Drains, err)
	}
}

func TestForceRemovalEndsThePauseOfADrain(t *testing.T) {
	f := nestedFacts(t)
	pause(f.Muxes["pair"])
	remove(f, f.Backends["b"])
	annotate(f.Backends["b"], v1alpha1.AnnotationForceRemoval)
	result, err := Document(f)
	if err != nil || len(result.Drains) != 1 || result.Drains[0].Phase != muxconfig.DrainGranted {
		t.Fatalf("drains %+v, error %v", result.Drains, err)
	}
	// What the pause holds goes on: the member that drains is not taken back.
	f.Stored = result.Document
	if result, err = Document(f); err != nil || result.Document != f.Stored {
		t.Fatalf("the drain does not stand: %+v, %v", result.Drains, err)
	}
}

func TestAMemberOnItsWayOutOfAPausedMuxIsNotTakenBack(t *testing.T) {
	f := nestedFacts(t)
	pair := f.Muxes["pair"]
	pair.Spec.Backends = pair.Spec.Backends[1:]
	result, err := Document(f)
	if err != nil || len(result.Drains) != 1 {
		t.Fatalf("drains %+v, error %v", result.Drains, err)
	}
	f.Stored = result.Document
	pause(pair)
	if result, err = Document(f); err != nil || result.Document != f.Stored {
		t.Fatalf("the pause changed the document: %+v, %v", result.Document, err)
	}
}

func TestAPausedMuxThatWasNotServedBeforeIsWaitedFor(t *testing.T) {
	f := readFacts(t, "testdata/nested-drain/1.yaml", nil)
	pause(f.Muxes["pair"])
	result, err := Document(f)
	if err != nil || result.ResolvedRefs.Reason != v1alpha1.ReasonBackendNotReady || !strings.Contains(result.ResolvedRefs.Message, "pair is paused") {
		t.Fatalf("references %+v, error %v", result.ResolvedRefs, err)
	}
	if result.Document.Mux("pair") != nil || result.Document.Backend("a") == nil {
		t.Errorf("document %+v must have the other members only", result.Document)
	}
}

func checkBlocked(t *testing.T, drains []Drain, member, because string) {
	t.Helper()
	if member == "" {
		if len(drains) > 0 {
			t.Errorf("drains %+v, want none", drains)
		}
		return
	}
	if len(drains) != 1 || drains[0].Member != member || drains[0].State != DrainBlocked || !strings.Contains(drains[0].Message, because) {
		t.Errorf("drains %+v, want %s blocked because %q", drains, member, because)
	}
}

func TestAStoredMuxGivesTheSpecThatGivesIt(t *testing.T) {
	weight, attempts := int32(3), int32(5)
	wire := muxconfig.Mux{
		Name: "m", UID: "u", Mode: "weighted", Keyspace: "replicated", OnFanoutPartial: "Fail",
		BackendTimeout: muxconfig.Duration(1500e6), Retry: muxconfig.Retry{MaxAttempts: attempts, InitialInterval: 20e6, MaxInterval: 61e9},
		Health: muxconfig.Health{Cooldown: 2e9, MaxCooldown: 3 * 3600e9, WhenAllDown: "Fail"},
	}
	sticky := wire
	sticky.Mode, sticky.StickyHash = "sticky-by-key", "rendezvous"
	members := []muxconfig.Member{{Name: "a", Backend: "store", Weight: &weight}, {Name: "b", Mux: "below"}}
	for _, want := range []muxconfig.Mux{wire, sticky} {
		want.Members = members
		mux := &v1alpha1.StorageMux{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "u"}}
		pinned := Facts{Mux: mux}.asStored(mux, &want)
		got := wireMux(pinned)
		for i := range pinned.Spec.Backends {
			kind, name := pinned.Spec.Backends[i].Target()
			member := muxconfig.Member{Name: pinned.Spec.Backends[i].Name, Weight: pinned.Spec.Backends[i].Weight}
			if kind == v1alpha1.MemberKindStorageMux {
				member.Mux = name
			} else {
				member.Backend = name
			}
			got.Members = append(got.Members, member)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", want.Mode, got, want)
		}
	}
}

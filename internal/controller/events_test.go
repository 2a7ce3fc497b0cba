package controller

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/internal/controller/fleet"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// recorded collects events as "object reason".
type recorded struct {
	mu   sync.Mutex
	list []string
}

func (r *recorded) Eventf(regarding, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, fmt.Sprintf("%s %s", regarding.(client.Object).GetName(), reason))
}

func (r *recorded) AnnotatedEventf(regarding, related runtime.Object, _ map[string]string, kind, reason, action, note string, args ...any) {
	r.Eventf(regarding, related, kind, reason, action, note, args...)
}

func (r *recorded) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

func TestWhatSeveralProxiesReportIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := &recorded{}
		p := &proxyEvents{sink: eventSink{recorder}}
		report := &muxconfig.Report{Members: []muxconfig.MemberReport{{Path: "a", Backend: "store", UID: "uid"}}}
		happen := func(pod, topic string) {
			target := fleet.Target{Mux: types.NamespacedName{Namespace: "ns", Name: "assets"}, MuxUID: "u", Pod: pod}
			p.happened(target, report, []muxconfig.Event{{Topic: topic, Path: "a", Message: "it happened"}})
		}
		for _, step := range []struct {
			pod, topic string
			after      time.Duration
			want       []string
		}{
			{"p1", "storage-mux.backend.down", 0, []string{"assets BackendDown", "store BackendDown"}},
			{"p2", "storage-mux.backend.down", time.Second, nil},
			{"p1", "storage-mux.failover", time.Second, []string{"assets Failover"}},
			{"p2", "storage-mux.failover", time.Second, nil},
			{"p1", "storage-mux.backend.recovered", time.Second, []string{"assets BackendRecovered", "store BackendRecovered"}},
			{"p2", "storage-mux.backend.recovered", time.Second, nil},
			{"p1", "storage-mux.backend.down", time.Second, []string{"assets BackendDown", "store BackendDown"}},
			{"p1", "storage-mux.failover", time.Minute, []string{"assets Failover"}},
			{"p1", "storage-mux.drain.started", time.Second, []string{"assets MemberDraining", "store MemberDraining"}},
			{"p1", "storage-mux.drain.completed", time.Second, []string{"assets MemberDrained", "store MemberDrained"}},
			{"p2", "storage-mux.drain.started", time.Second, nil},
			{"p2", "storage-mux.drain.completed", time.Second, nil},
			{"p1", "storage-mux.weight.changed", time.Second, nil},
		} {
			time.Sleep(step.after)
			happen(step.pod, step.topic)
			if got := recorder.take(); !slices.Equal(got, step.want) {
				t.Errorf("%s of %s: told %v, want %v", step.topic, step.pod, got, step.want)
			}
		}
	})
}

func TestNotesFitIntoAnEvent(t *testing.T) {
	if got := note("%s", strings.Repeat("ä", 2000)); len(got) > maxNote {
		t.Errorf("a note of %d bytes, want at most %d", len(got), maxNote)
	}
}

package controller

import (
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/controller/fleet"
	"github.com/suaveplan/storagemux/internal/muxconfig"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	normal  = corev1.EventTypeNormal
	warning = corev1.EventTypeWarning
)

// Reasons of events that are not reasons of conditions.
const (
	reasonDrainStarted   = "DrainStarted"
	reasonDrainBlocked   = "DrainBlocked"
	reasonDrainForced    = "DrainForced"
	reasonDrainCompleted = "DrainCompleted"

	reasonBackendDown      = "BackendDown"
	reasonBackendRecovered = "BackendRecovered"
	reasonFailover         = "Failover"
	reasonFanoutPartial    = "FanoutPartial"
	reasonMemberDraining   = "MemberDraining"
	reasonMemberDrained    = "MemberDrained"
)

// What an event's action says that was done.
const (
	actionDrain   = "Drain"
	actionObserve = "Observe"
)

// maxNote is what the API server takes as a note.
const maxNote = 1024

// eventSink records events.
type eventSink struct{ recorder recorder.EventRecorder }

// one records an event of one object.
func (s eventSink) one(object client.Object, kind, reason, action, format string, args ...any) {
	s.recorder.Eventf(object, nil, kind, reason, action, "%s", note(format, args...))
}

// both records an event of a mux and one of a member of it, which may be nil.
func (s eventSink) both(mux *v1alpha1.StorageMux, member client.Object, kind, reason, format string, args ...any) {
	text := note(format, args...)
	if member == nil {
		s.recorder.Eventf(mux, nil, kind, reason, actionDrain, "%s", text)
		return
	}
	s.recorder.Eventf(mux, member, kind, reason, actionDrain, "%s", text)
	s.recorder.Eventf(member, mux, kind, reason, actionDrain, "%s", "StorageMux "+mux.Name+": "+text)
}

func note(format string, args ...any) string {
	text := strings.ToValidUTF8(fmt.Sprintf(format, args...), "?")
	if len(text) > maxNote-64 {
		text = strings.ToValidUTF8(text[:maxNote-64], "") + "…"
	}
	return text
}

// joined lists at most ten names.
func joined(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// topicReasons are the topics of proxies' events that become events here.
var topicReasons = map[string]struct{ kind, reason string }{
	"storage-mux.backend.down":      {warning, reasonBackendDown},
	"storage-mux.backend.recovered": {normal, reasonBackendRecovered},
	"storage-mux.failover":          {warning, reasonFailover},
	"storage-mux.fanout-partial":    {warning, reasonFanoutPartial},
	"storage-mux.drain.started":     {normal, reasonMemberDraining},
	"storage-mux.drain.completed":   {normal, reasonMemberDrained},
}

// repeatAfter is for how long what one proxy reported is not told again when it,
// or another, reports the same.
const repeatAfter = time.Minute

// proxyEvents turns what proxies report into events of the mux and of the
// backend, once for all replicas.
type proxyEvents struct {
	sink eventSink

	mu   sync.Mutex
	told map[toldKey]told
}

// toldKey names a member, and of what kind of event the last one is kept:
// of those that cancel each other out only the last counts.
type toldKey struct {
	mux, path, group string
}

type told struct {
	reason string
	at     time.Time
}

// maxTold bounds the memory of what was told.
const maxTold = 8192

// happened is fleet.Options.Happened.
func (p *proxyEvents) happened(target fleet.Target, report *muxconfig.Report, events []muxconfig.Event) {
	mux := &v1alpha1.StorageMux{ObjectMeta: metav1.ObjectMeta{
		Namespace: target.Mux.Namespace, Name: target.Mux.Name, UID: types.UID(target.MuxUID),
	}}
	for _, event := range events {
		as, ok := topicReasons[event.Topic]
		if !ok || !p.news(target.MuxUID, event.Path, as.reason) {
			continue
		}
		backend := backendAt(report, target.Mux.Namespace, event.Path)
		var related runtime.Object
		if backend != nil {
			related = backend
		}
		p.sink.recorder.Eventf(mux, related, as.kind, as.reason, actionObserve, "%s", note("%s", event.Message))
		if backend != nil && as.reason != reasonFailover {
			p.sink.recorder.Eventf(backend, mux, as.kind, as.reason, actionObserve, "%s", note("StorageMux %s: %s", mux.Name, event.Message))
		}
	}
}

// news reports whether an event has to be told, and notes that it was.
func (p *proxyEvents) news(mux, path, reason string) bool {
	group := reason
	if reason == reasonBackendDown || reason == reasonBackendRecovered {
		group = "health"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	key := toldKey{mux, path, group}
	if last, ok := p.told[key]; ok && last.reason == reason && now.Sub(last.at) < repeatAfter {
		return false
	}
	if p.told == nil || len(p.told) >= maxTold {
		p.told = map[toldKey]told{}
	}
	p.told[key] = told{reason, now}
	return true
}

// backendAt returns a reference to the backend at path, nil for a mux.
func backendAt(report *muxconfig.Report, namespace, path string) *v1alpha1.StorageBackend {
	for i := range report.Members {
		if m := &report.Members[i]; m.Path == path && m.Backend != "" {
			return &v1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: m.Backend, UID: types.UID(m.UID),
			}}
		}
	}
	return nil
}

package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// MuxFacts are all that the status of a StorageMux depends on.
type MuxFacts struct {
	// Mux carries the status as it was before.
	Mux                    *v1alpha1.StorageMux
	Accepted, ResolvedRefs render.Verdict
	// Stored is the document that proxies can read now, nil if there is none.
	// Shape stands in for it where the mux has no proxies of its own.
	Stored, Shape *muxconfig.Document
	// Children is set where a child could not be applied, TooOld where the
	// proxies are too old for what the spec asks for, and Trouble where there
	// is no pod at all.
	Children, TooOld, Trouble *render.Verdict

	Proxies []Proxy
	// Above are the proxies of the muxes that contain this one.
	Above []Proxy
	// Drain is nil while the mux is not being deleted.
	Drain  *Drain
	Paused bool
	Now    time.Time
}

// Mux returns the status of a StorageMux.
func Mux(f MuxFacts) v1alpha1.StorageMuxStatus {
	b := muxBuilder{MuxFacts: f, replicas: replicas(f.Proxies), above: replicas(f.Above), next: *f.Mux.Status.DeepCopy()}
	b.topology = f.Stored
	if b.topology == nil {
		b.topology = f.Shape
	}
	b.next.ObservedGeneration = f.Mux.Generation
	b.wellKnown()
	b.observe()
	b.next.Drain = drainStatus(f.Drain, f.Mux.Status.Drain)
	b.conditions()
	if figuresMoved(muxFigures(&f.Mux.Status), muxFigures(&b.next)) {
		now := metav1.NewTime(f.Now.UTC().Truncate(time.Second))
		b.next.StatsTime = &now
	}
	return b.next
}

type muxBuilder struct {
	MuxFacts
	// replicas are the mux's own proxies, above those of muxes that contain
	// it; both without those that end.
	replicas, above []Proxy
	topology        *muxconfig.Document
	next            v1alpha1.StorageMuxStatus
}

// wellKnown fills in what follows from the spec and the stored document.
func (b *muxBuilder) wellKnown() {
	b.next.Endpoint = render.Endpoint(b.Mux)
	b.next.Bucket = b.Mux.FrontendBucket()
	b.next.ConnectionSecretName, b.next.Selector = "", ""
	if b.hasWorkload() {
		b.next.ConnectionSecretName = render.ConnectionSecretName(b.Mux.Name)
		b.next.Selector = labels.SelectorFromSet(render.SelectorLabels(b.Mux.Name)).String()
	}
	b.next.Replicas, b.next.ProgrammedReplicas = int32(len(b.replicas)), 0
	if b.Stored == nil {
		return
	}
	b.next.Revision = max(b.Stored.Revision, b.next.Revision)
	for _, p := range b.replicas {
		if b.serves(p) {
			b.next.ProgrammedReplicas++
		}
	}
}

func (b *muxBuilder) hasWorkload() bool { return b.Mux.Spec.Proxy.Type != v1alpha1.ProxyTypeNone }

// serves reports whether p told lately that it serves the stored document.
func (b *muxBuilder) serves(p Proxy) bool {
	return b.Stored != nil && p.heard() && p.Running && p.Acknowledged(b.Stored)
}

// settling reports whether to keep what the status says of the mux's own
// proxies.
func (b *muxBuilder) settling() bool { return b.sameAsBefore() && unsettled(b.replicas) }

// membersSettling reports whether to keep what the status says of members.
func (b *muxBuilder) membersSettling() bool {
	return b.sameAsBefore() && unsettled(slices.Concat(b.replicas, b.above))
}

func (b *muxBuilder) sameAsBefore() bool {
	before := b.Mux.Status
	return b.topology != nil && before.ObservedGeneration != 0 && (b.Stored == nil || before.Revision == b.Stored.Revision)
}

// observe fills in members, totals and capabilities.
func (b *muxBuilder) observe() {
	if b.settling() {
		b.next.ProgrammedReplicas = min(b.Mux.Status.ProgrammedReplicas, b.next.Replicas)
	}
	if b.membersSettling() {
		return
	}
	b.next.Members, b.next.BackendsUp, b.next.Capabilities, b.next.Totals = nil, "", nil, nil
	if b.topology == nil {
		return
	}
	views := b.views()
	var leaves []*muxconfig.MemberReport
	up, backends := 0, 0
	add := func(status v1alpha1.MemberStatus, seen [][]*muxconfig.MemberReport) {
		if len(b.next.Members) == v1alpha1.MaxStatusMembers {
			return
		}
		status.Observation = observation(seen)
		b.next.Members = append(b.next.Members, status)
		if status.Kind == v1alpha1.MemberKindStorageMux {
			return
		}
		backends++
		if status.State == v1alpha1.MemberStateUp {
			up++
		}
		leaves = append(leaves, slices.Concat(seen...)...)
	}
	shown := map[string]bool{}
	_ = muxconfig.Walk(b.topology, func(path string, _ *muxconfig.Mux, member *muxconfig.Member) {
		shown[path] = true
		add(memberStatus(path, member.Backend, member.Mux), seenAt(views, path, uidOf(b.topology, member)))
	})
	if b.Stored == nil {
		// Members on their way out are only in the documents of others.
		for _, m := range leftIn(views, shown) {
			path := m.path
			add(memberStatus(path, m.report.Backend, m.report.Mux), seenAt(views, path, m.report.UID))
		}
	}
	b.next.BackendsUp = fmt.Sprintf("%d/%d", up, backends)
	b.next.Capabilities = capabilities(leaves)
	b.next.Totals = addTotals(views)
}

func memberStatus(path, backend, mux string) v1alpha1.MemberStatus {
	if mux != "" {
		return v1alpha1.MemberStatus{Path: path, Kind: v1alpha1.MemberKindStorageMux, Name: mux}
	}
	return v1alpha1.MemberStatus{Path: path, Kind: v1alpha1.MemberKindStorageBackend, Name: backend}
}

func uidOf(doc *muxconfig.Document, member *muxconfig.Member) string {
	if member.Mux != "" {
		return doc.Mux(member.Mux).UID
	}
	if backend := doc.Backend(member.Backend); backend != nil {
		return backend.UID
	}
	return ""
}

func (b *muxBuilder) conditions() {
	set := conditionSet{&b.next.Conditions, b.Mux.Generation, b.Now}
	accepted, refs := fromRender(b.Accepted), fromRender(b.ResolvedRefs)
	set.set(v1alpha1.ConditionAccepted, accepted)
	set.set(v1alpha1.ConditionResolvedRefs, refs)

	settling := b.settling()
	if !b.membersSettling() || !set.keep(v1alpha1.ConditionBackendsHealthy) {
		set.set(v1alpha1.ConditionBackendsHealthy, b.backendsHealthy())
	}
	programmed := b.programmed()
	if !settling || b.cause() != nil || !set.keep(v1alpha1.ConditionProgrammed) {
		set.set(v1alpha1.ConditionProgrammed, programmed)
	}
	if !settling || !set.keep(v1alpha1.ConditionReady) {
		set.set(v1alpha1.ConditionReady, b.ready())
	}
	switch {
	case b.Paused:
		v := isTrue(v1alpha1.ReasonPaused, "the annotation %s stops the operator", v1alpha1.AnnotationPaused)
		set.setWhileTrue(v1alpha1.ConditionReconciling, &v)
	case settling:
	case !b.hasWorkload() && len(b.Proxies) > 0:
		v := isTrue(v1alpha1.ReasonProgressing, "proxies of the time before proxy.type None have not ended yet")
		set.setWhileTrue(v1alpha1.ConditionReconciling, &v)
	case programmed.reason == v1alpha1.ReasonPending || b.trouble() != nil && programmed.reason == b.trouble().Reason:
		v := isTrue(v1alpha1.ReasonProgressing, "%s", programmed.message)
		set.setWhileTrue(v1alpha1.ConditionReconciling, &v)
	default:
		set.setWhileTrue(v1alpha1.ConditionReconciling, nil)
	}
	stall := stalled(accepted)
	if stall == nil && b.Children != nil && b.Children.Reason == v1alpha1.ReasonChildConflict {
		v := isTrue(b.Children.Reason, "%s", b.Children.Message)
		stall = &v
	}
	if b.Paused {
		stall = nil
	}
	set.setWhileTrue(v1alpha1.ConditionStalled, stall)
	set.setWhileTrue(v1alpha1.ConditionDraining, draining(b.Drain))
}

// cause is what keeps the spec from being programmed before any proxy is asked.
func (b *muxBuilder) cause() *verdict {
	var v verdict
	switch {
	case !b.Accepted.OK:
		v = isFalse(v1alpha1.ReasonNotAccepted, "the spec is not accepted: %s", b.Accepted.Message)
	case b.Children != nil:
		v = isFalse(b.Children.Reason, "%s", b.Children.Message)
	case !b.hasWorkload():
		v = isTrue(v1alpha1.ReasonNoWorkload, "a mux of proxy type None has no proxies")
	case b.Stored == nil && !b.ResolvedRefs.OK:
		v = isFalse(v1alpha1.ReasonRefsNotResolved, "there is nothing to serve yet: %s", b.ResolvedRefs.Message)
	case render.Replicas(b.Mux) == 0 && len(b.replicas) == 0:
		v = isFalse(v1alpha1.ReasonScaledToZero, "spec.proxy.replicas is 0")
	default:
		return nil
	}
	return &v
}

func (b *muxBuilder) programmed() verdict {
	if v := b.cause(); v != nil {
		return *v
	}
	switch {
	case b.TooOld != nil:
		return isFalse(b.TooOld.Reason, "%s", b.TooOld.Message)
	case b.Stored == nil:
		return isFalse(v1alpha1.ReasonPending, "the configuration has not been written yet")
	}
	var missing []string
	serving, lost := 0, 0
	for _, p := range b.replicas {
		switch {
		case b.serves(p):
			serving++
		case p.heard() && p.Report.MaxSchema < b.Stored.Schema:
			return isFalse(v1alpha1.ReasonProxyTooOld, "pod %s reads configurations up to version %d and this one has version %d", p.Pod, p.Report.MaxSchema, b.Stored.Schema)
		case b.rejects(p):
			return isFalse(v1alpha1.ReasonRejected, "pod %s refused revision %d: %s", p.Pod, b.Stored.Revision, p.Report.Rejection.Message)
		case p.Ready:
			missing = append(missing, p.Pod)
			if !p.heard() && !p.Unheard {
				lost++
			}
		}
	}
	switch {
	case serving > 0 && len(missing) == 0:
		return isTrue(v1alpha1.ReasonProgrammed, "%d of %d proxies serve revision %d", serving, len(b.replicas), b.Stored.Revision)
	case serving == 0 && lost > 0 && lost == len(missing):
		return isUnknown(v1alpha1.ReasonNoReport, "no proxy answers")
	case serving == 0 && b.trouble() != nil:
		return isFalse(b.trouble().Reason, "%s", b.trouble().Message)
	default:
		return isFalse(v1alpha1.ReasonPending, "%d of %d proxies serve revision %d", serving, len(b.replicas), b.Stored.Revision)
	}
}

// trouble is what keeps the first pod that has any from running, or all of them
// from being created; nil if nothing is known.
func (b *muxBuilder) trouble() *render.Verdict {
	for _, p := range b.replicas {
		if p.Trouble != nil {
			return p.Trouble
		}
	}
	if len(b.replicas) == 0 {
		return b.Trouble
	}
	return nil
}

func (b *muxBuilder) rejects(p Proxy) bool {
	return p.heard() && p.Report.Rejection != nil && p.Report.Rejection.Revision >= b.Stored.Revision
}

// backendsHealthy judges the leaves alone: nested muxes derive their health
// from them.
func (b *muxBuilder) backendsHealthy() verdict {
	var down, unwell, silent []string
	leaves := 0
	for _, m := range b.next.Members {
		if m.Kind != v1alpha1.MemberKindStorageBackend {
			continue
		}
		leaves++
		switch {
		case m.Replicas.Up+m.Replicas.Down+m.Replicas.Draining == 0:
			silent = append(silent, m.Path)
		case m.Replicas.Down > 0 && m.Replicas.Up+m.Replicas.Draining == 0:
			down = append(down, m.Path)
			unwell = append(unwell, m.Path+" is down")
		case m.Replicas.Down > 0:
			unwell = append(unwell, fmt.Sprintf("%s is down in %d of %d proxies", m.Path, m.Replicas.Down, m.Replicas.Up+m.Replicas.Down+m.Replicas.Draining))
		case m.Replicas.Draining > 0:
			unwell = append(unwell, m.Path+" is draining")
		}
	}
	switch {
	case leaves == 0 && b.topology != nil:
		return isFalse(v1alpha1.ReasonAllDown, "the mux has no member left")
	case leaves == 0 || len(silent) == leaves:
		return isUnknown(v1alpha1.ReasonNoReport, "no proxy has told lately")
	case len(down) == leaves:
		return isFalse(v1alpha1.ReasonAllDown, "every member is down")
	case len(unwell) > 0:
		return isFalse(v1alpha1.ReasonSomeDown, "%s", joined(unwell, 8))
	case len(silent) > 0:
		return isUnknown(v1alpha1.ReasonNoReport, "no proxy has told lately of %s", joined(silent, 8))
	default:
		return isTrue(v1alpha1.ReasonAllUp, "every member is up")
	}
}

func (b *muxBuilder) ready() verdict {
	if !b.hasWorkload() {
		switch {
		case !b.Accepted.OK:
			return isFalse(v1alpha1.ReasonNotAccepted, "%s", b.Accepted.Message)
		case !b.ResolvedRefs.OK:
			return isFalse(v1alpha1.ReasonRefsNotResolved, "%s", b.ResolvedRefs.Message)
		}
		return isTrue(v1alpha1.ReasonNoWorkload, "the mux can be nested")
	}
	serving, silent := 0, 0
	for _, p := range b.replicas {
		switch {
		case !p.Ready:
		case p.heard() && p.Report.Applied != nil:
			serving++
		case !p.heard():
			silent++
		}
	}
	if serving > 0 {
		return isTrue(v1alpha1.ReasonServing, "requests are served")
	}
	if v := b.cause(); v != nil {
		return *v
	}
	if silent > 0 {
		return isUnknown(v1alpha1.ReasonNoReport, "proxies are ready and none of them answers")
	}
	if trouble := b.trouble(); trouble != nil {
		return isFalse(trouble.Reason, "%s", trouble.Message)
	}
	return isFalse(v1alpha1.ReasonNoProxyServing, "none of %d proxies is ready to serve", len(b.replicas))
}

// joined lists at most limit texts.
func joined(texts []string, limit int) string {
	if len(texts) > limit {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:limit], ", "), len(texts)-limit)
	}
	return strings.Join(texts, ", ")
}

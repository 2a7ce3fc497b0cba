package status

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/render"
)

// Proxy is what is known of one proxy pod.
type Proxy struct {
	render.Proxy
	// Terminating: the pod is on its way out and does not count as a replica.
	Terminating bool
	// Unheard: this leader has no answer of the pod yet, and has not waited
	// for the grace period. Tried: it has been asked a few times in vain.
	Unheard, Tried bool
	// Trouble is what keeps the pod from running, nil if nothing is known.
	Trouble *render.Verdict
}

// heard reports whether p's report still counts.
func (p Proxy) heard() bool { return p.Report != nil && !p.Stale }

// unsettled reports whether a new leader has yet to hear of proxies that run,
// so that what the leader before it wrote is the better truth.
func unsettled(replicas []Proxy) bool {
	none := !slices.ContainsFunc(replicas, Proxy.heard)
	return slices.ContainsFunc(replicas, func(p Proxy) bool {
		return p.Ready && p.Unheard && (none || !p.Tried)
	})
}

// replicas leaves out the proxies that are on their way out, and puts the rest
// in a stable order.
func replicas(proxies []Proxy) []Proxy {
	stay := slices.DeleteFunc(slices.Clone(proxies), func(p Proxy) bool { return p.Terminating })
	slices.SortFunc(stay, func(a, b Proxy) int { return cmp.Compare(a.Pod, b.Pod) })
	return stay
}

// observation adds up what each proxy says of one member or backend. seen has
// one list for each proxy, nil where the proxy has not told.
func observation(seen [][]*muxconfig.MemberReport) v1alpha1.Observation {
	var o v1alpha1.Observation
	for _, reports := range seen {
		count(&o.Replicas, reports)
		for _, m := range reports {
			add(&o, m)
		}
	}
	switch {
	case o.Replicas.Draining > 0:
		o.State = v1alpha1.MemberStateDraining
	case o.Replicas.Down > 0:
		o.State = v1alpha1.MemberStateDown
	case o.Replicas.Up > 0:
		o.State = v1alpha1.MemberStateUp
	default:
		o.State = v1alpha1.MemberStateUnknown
	}
	return o
}

// count adds one proxy, by the worst state that it has for any of its paths to
// the member.
func count(c *v1alpha1.StateCounts, reports []*muxconfig.MemberReport) {
	has := func(state muxconfig.MemberState) bool {
		return slices.ContainsFunc(reports, func(m *muxconfig.MemberReport) bool { return m.State == state })
	}
	switch {
	case has(muxconfig.StateDraining):
		c.Draining++
	case has(muxconfig.StateDown):
		c.Down++
	case has(muxconfig.StateUp):
		c.Up++
	default:
		c.Unknown++
	}
}

// add sums up figures and takes the worst of what cannot be summed up.
func add(o *v1alpha1.Observation, m *muxconfig.MemberReport) {
	o.Hits += max(m.Hits, 0)
	o.Misses += max(m.Misses, 0)
	o.Errors += max(m.Errors, 0)
	o.Timeouts += max(m.Timeouts, 0)
	o.Aborts += max(m.Aborts, 0)
	o.InFlight += max(m.InFlight, 0)
	o.LatencyMicroseconds.Last = max(o.LatencyMicroseconds.Last, m.LastLatency)
	o.LatencyMicroseconds.P50 = max(o.LatencyMicroseconds.P50, m.P50Latency)
	o.LatencyMicroseconds.P99 = max(o.LatencyMicroseconds.P99, m.P99Latency)
	o.ConsecutiveFailures = max(o.ConsecutiveFailures, int64(m.ConsecutiveFailures))

	// The error of the proxy whose view changed last is the latest one.
	changed := metav1.NewTime(m.LastTransitionTime.UTC()).Rfc3339Copy()
	latest := o.LastTransitionTime == nil || o.LastTransitionTime.Before(&changed)
	if m.LastError != nil && (o.LastError == nil || latest) {
		o.LastError = &v1alpha1.ErrorStatus{
			Code:    cut(cmp.Or(m.LastError.Code, "UNKNOWN"), 64),
			Message: cut(m.LastError.Message, v1alpha1.MaxErrorMessageLength),
		}
	}
	if latest && !m.LastTransitionTime.IsZero() {
		o.LastTransitionTime = &changed
	}
}

// cut shortens text to at most limit characters, as the API server counts them.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "?")
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}

// capabilities returns the weakest of what is reported, nil if nothing is.
func capabilities(reports []*muxconfig.MemberReport) *v1alpha1.Capabilities {
	var weakest *v1alpha1.Capabilities
	for _, m := range reports {
		if len(m.Capabilities) == 0 {
			continue
		}
		c := parseCapabilities(m.Capabilities)
		if weakest == nil {
			weakest = &c
			continue
		}
		weakest.Range = weakest.Range && c.Range
		weakest.PartialWrite = weakest.PartialWrite && c.PartialWrite
		weakest.Metadata = weakest.Metadata && c.Metadata
		weakest.ConditionalWrite = weakest.ConditionalWrite && c.ConditionalWrite
		weakest.NativeMultipart = weakest.NativeMultipart && c.NativeMultipart
		weakest.OrderedList = weakest.OrderedList && c.OrderedList
		weakest.Tagging = weakest.Tagging && c.Tagging
		if slices.Index(identities, c.Identity) > slices.Index(identities, weakest.Identity) {
			weakest.Identity = c.Identity
		}
	}
	return weakest
}

// identities, from the strongest to the weakest.
var identities = []v1alpha1.Identity{v1alpha1.IdentityNative, v1alpha1.IdentityStored, v1alpha1.IdentityWeak}

func parseCapabilities(names []string) v1alpha1.Capabilities {
	has := func(name string) bool { return slices.Contains(names, name) }
	c := v1alpha1.Capabilities{
		Range:            has(muxconfig.CapabilityRange),
		PartialWrite:     has(muxconfig.CapabilityPartialWrite),
		Metadata:         has(muxconfig.CapabilityMetadata),
		ConditionalWrite: has(muxconfig.CapabilityConditionalWrite),
		NativeMultipart:  has(muxconfig.CapabilityNativeMultipart),
		OrderedList:      has(muxconfig.CapabilityOrderedList),
		Tagging:          has(muxconfig.CapabilityTagging),
		Identity:         v1alpha1.IdentityWeak,
	}
	switch {
	case has(muxconfig.CapabilityIdentityNative):
		c.Identity = v1alpha1.IdentityNative
	case has(muxconfig.CapabilityIdentityStored):
		c.Identity = v1alpha1.IdentityStored
	}
	return c
}

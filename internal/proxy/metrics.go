package proxy

import (
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/muxengine"
	s3front "github.com/suaveplan/storagemux/internal/proxy/s3"
	"github.com/suaveplan/storagemux/internal/proxy/spool"
)

// metrics are the proxy's figures for Prometheus. Labels come from fixed sets
// and from the document, never from requests.
type metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	firstByte *prometheus.HistogramVec
	duration  *prometheus.HistogramVec
	bytes     *prometheus.CounterVec
	aborted   prometheus.Counter
	reloads   *prometheus.CounterVec
	events    *prometheus.CounterVec
	// candidates makes the instruments of fallback backends.
	candidates candidateMeter
	retired    retiredResumes
}

const namespace = "storagemux"

// latencies reach from a hit in memory to a large transfer.
var latencies = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 120}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "requests_total",
			Help: "S3 requests answered, by operation, HTTP status and S3 error code.",
		}, []string{"operation", "status", "error"}),
		firstByte: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "request_first_byte_seconds", Buckets: latencies,
			Help: "Time from a request's head to the head of its answer.",
		}, []string{"operation"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "request_duration_seconds", Buckets: latencies,
			Help: "Time from a request's head to the last byte of its answer.",
		}, []string{"operation"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "request_bytes_total",
			Help: "Bytes of objects taken from clients (in) and sent to them (out).",
		}, []string{"direction"}),
		aborted: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: namespace, Name: "requests_aborted_total",
			Help: "Requests whose answer was cut, because the client left or a body broke.",
		}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "reloads_total",
			Help: "Documents that were put into force (applied) or refused (rejected).",
		}, []string{"result"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "events_total",
			Help: "Events of the mux, by topic.",
		}, []string{"topic"}),
		candidates: newCandidateMeter(),
	}
	m.reloads.WithLabelValues("applied")
	m.reloads.WithLabelValues("rejected")
	m.registry.MustRegister(m.requests, m.firstByte, m.duration, m.bytes, m.aborted, m.reloads, m.events, m.candidates.calls, m.candidates.firstByte,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// RequestFinished implements s3front.Metrics.
func (m *metrics) RequestFinished(s s3front.RequestStats) {
	m.requests.WithLabelValues(s.Operation, strconv.Itoa(s.Status), s.ErrorCode).Inc()
	if s.FirstByte > 0 {
		m.firstByte.WithLabelValues(s.Operation).Observe(s.FirstByte.Seconds())
	}
	m.duration.WithLabelValues(s.Operation).Observe(s.Duration.Seconds())
	m.bytes.WithLabelValues("in").Add(float64(s.BytesIn))
	m.bytes.WithLabelValues("out").Add(float64(s.BytesOut))
	if s.Aborted {
		m.aborted.Inc()
	}
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// watch adds what is read at the moment of a scrape.
func (m *metrics) watch(front *s3front.Handler, spooled *spool.Spool, facts func() facts) {
	m.registry.MustRegister(&collector{front: front, spool: spooled, facts: facts, retired: &m.retired})
}

// retiredResumes are those of engines that were given up.
type retiredResumes struct{ resumed, broken atomic.Uint64 }

func (r *retiredResumes) add(s muxengine.Stats) {
	resumed, broken := resumes(s)
	r.resumed.Add(resumed)
	r.broken.Add(broken)
}

// resumes counts over all muxes of the tree: each resumes what breaks below it,
// and what it cannot resume may go on in the mux around it.
func resumes(s muxengine.Stats) (resumed, broken uint64) {
	resumed, broken = s.TotalResumes, s.TotalBroken
	eachMember(s, func(m muxengine.MemberStats) {
		if m.Nested != nil {
			resumed += m.Nested.TotalResumes
		}
	})
	return resumed, broken
}

// collector reads the engine's, the front's and the spool's own counters, so
// that nothing is counted twice.
type collector struct {
	front   *s3front.Handler
	spool   *spool.Spool
	facts   func() facts
	retired *retiredResumes
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

var (
	descInFlight       = describe("requests_in_flight", "S3 requests that run.")
	descCalls          = describe("calls_total", "Operations on the mux; one that tries two members counts once.")
	descFailovers      = describe("failovers_total", "Times that an operation went on to another member after a transient error.")
	descFanoutPartials = describe("fanout_partials_total", "Writes that did not reach all members that they were meant for.")
	descResumes        = describe("body_resumes_total", "Bodies of objects that broke off on a member, by whether they went on from another (resumed) or not (broken).", "result")
	descApplied        = describe("applied_revision", "Revision of the document in force, 0 before the first.")
	descRejected       = describe("rejected_revision", "Revision of the newest document if it was refused, else 0.")

	descAttempts       = describe("member_attempts_total", "Attempts on a member that ended, by outcome (hit, miss, error, abort).", "member", "outcome")
	descTimeouts       = describe("member_timeouts_total", "Attempts on a member that ended by its timeout; they are errors too.", "member")
	descMemberInFlight = describe("member_in_flight", "Requests in flight on a member.", "member")
	descMemberState    = describe("member_state", "1 for the state that a member is in (up, down, draining), 0 for the others.", "member", "state")
	descMemberLatency  = describe("member_first_byte_seconds", "Time to the first byte of a member, from a sample of 256 attempts.", "member", "quantile")

	descSpool        = describe("spool_bytes", "Bytes of request bodies that are kept to be sent again.", "where")
	descSpoolLimit   = describe("spool_limit_bytes", "Most bytes that may be kept.", "where")
	descSpoolRefused = describe("spool_refused_total", "Bodies for which the spool had no room.")
)

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descInFlight, descCalls, descFailovers, descFanoutPartials, descResumes, descApplied, descRejected,
		descAttempts, descTimeouts, descMemberInFlight, descMemberState, descMemberLatency,
		descSpool, descSpoolLimit, descSpoolRefused,
	} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	emit := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, labels...)
	}
	counter, gauge := prometheus.CounterValue, prometheus.GaugeValue
	f := c.facts()
	sum := totals(f.stats, f.retired)
	emit(descInFlight, gauge, float64(c.front.InFlight()))
	emit(descCalls, counter, float64(sum.Calls))
	emit(descFailovers, counter, float64(sum.Failovers))
	emit(descFanoutPartials, counter, float64(sum.FanoutPartials))
	resumed, broken := resumes(f.stats)
	emit(descResumes, counter, float64(resumed+c.retired.resumed.Load()), "resumed")
	emit(descResumes, counter, float64(broken+c.retired.broken.Load()), "broken")
	applied, rejected := int64(0), int64(0)
	if f.served != nil {
		applied = f.served.doc.Revision
	}
	if f.rejection != nil {
		rejected = f.rejection.Revision
	}
	emit(descApplied, gauge, float64(applied))
	emit(descRejected, gauge, float64(rejected))

	f.eachMember(func(m muxengine.MemberStats) {
		emit(descAttempts, counter, float64(m.Hits), m.Path, "hit")
		emit(descAttempts, counter, float64(m.Misses), m.Path, "miss")
		emit(descAttempts, counter, float64(m.Errors), m.Path, "error")
		emit(descAttempts, counter, float64(m.Aborts), m.Path, "abort")
		emit(descTimeouts, counter, float64(m.Timeouts), m.Path)
		emit(descMemberInFlight, gauge, float64(m.InFlight), m.Path)
		for _, state := range []muxconfig.MemberState{muxconfig.StateUp, muxconfig.StateDown, muxconfig.StateDraining} {
			emit(descMemberState, gauge, oneIf(string(state) == string(m.State)), m.Path, string(state))
		}
		emit(descMemberLatency, gauge, m.P50Latency.Seconds(), m.Path, "0.5")
		emit(descMemberLatency, gauge, m.P99Latency.Seconds(), m.Path, "0.99")
	})

	use := c.spool.Usage()
	emit(descSpool, gauge, float64(use.Memory), "memory")
	emit(descSpool, gauge, float64(use.Disk), "disk")
	emit(descSpoolLimit, gauge, float64(use.MemoryLimit), "memory")
	emit(descSpoolLimit, gauge, float64(use.DiskLimit), "disk")
	emit(descSpoolRefused, counter, float64(use.Refused))
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

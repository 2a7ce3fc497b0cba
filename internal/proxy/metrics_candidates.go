package proxy

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/suaveplan/storagemux/internal/fallbackuri"
)

// candidateMeter is the meter of fallback backends over Prometheus. Of what they
// tell it keeps the scheme and the outcome, of which there are few.
type candidateMeter struct {
	noop.Meter
	calls     *prometheus.CounterVec
	firstByte *prometheus.HistogramVec
}

var candidateLabels = []string{string(fallbackuri.AttributeScheme), string(fallbackuri.AttributeOutcome)}

func newCandidateMeter() candidateMeter {
	return candidateMeter{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "fallback_candidates_total",
			Help: "Calls of candidates of fallback backends, by scheme and by what they meant for the walk (ok, transient, semantic, abort).",
		}, candidateLabels),
		firstByte: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "fallback_candidate_first_byte_seconds", Buckets: latencies,
			Help: "Time to the first byte of a candidate's answer.",
		}, candidateLabels),
	}
}

// Int64Counter implements metric.Meter.
func (m candidateMeter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	if name != fallbackuri.CandidatesCounter {
		return noop.Int64Counter{}, nil
	}
	return candidateCounter{vec: m.calls}, nil
}

// Float64Histogram implements metric.Meter.
func (m candidateMeter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	if name != fallbackuri.LatencyHistogram {
		return noop.Float64Histogram{}, nil
	}
	return candidateHistogram{vec: m.firstByte}, nil
}

type candidateCounter struct {
	noop.Int64Counter
	vec *prometheus.CounterVec
}

// Add implements metric.Int64Counter.
func (c candidateCounter) Add(_ context.Context, n int64, opts ...metric.AddOption) {
	c.vec.WithLabelValues(candidateValues(metric.NewAddConfig(opts).Attributes())...).Add(float64(n))
}

type candidateHistogram struct {
	noop.Float64Histogram
	vec *prometheus.HistogramVec
}

// Record implements metric.Float64Histogram.
func (h candidateHistogram) Record(_ context.Context, value float64, opts ...metric.RecordOption) {
	h.vec.WithLabelValues(candidateValues(metric.NewRecordConfig(opts).Attributes())...).Observe(value)
}

func candidateValues(set attribute.Set) []string {
	values := make([]string, len(candidateLabels))
	for i, label := range candidateLabels {
		value, _ := set.Value(attribute.Key(label))
		values[i] = value.String()
	}
	return values
}

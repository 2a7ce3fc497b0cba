package status

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

// Difference says what sets two statuses apart.
type Difference int

const (
	// Same: nothing has to be written. Figures that no request of a client
	// moves, such as failures in a row, do not count by themselves.
	Same Difference = iota
	// Figures: only figures moved.
	Figures
	// State: something that users wait for changed.
	State
)

// CompareMux tells how after differs from before.
func CompareMux(before, after *v1alpha1.StorageMuxStatus) Difference {
	return compare(withoutMuxFigures(before), withoutMuxFigures(after), muxFigures(before), muxFigures(after))
}

// CompareBackend tells how after differs from before.
func CompareBackend(before, after *v1alpha1.StorageBackendStatus) Difference {
	return compare(withoutBackendFigures(before), withoutBackendFigures(after), backendFigures(before), backendFigures(after))
}

func compare(before, after any, figuresBefore, figuresAfter []figures) Difference {
	switch {
	case !equality.Semantic.DeepEqual(before, after):
		return State
	case figuresMoved(figuresBefore, figuresAfter):
		return Figures
	default:
		return Same
	}
}

// figures are the numbers that requests of clients move.
type figures struct {
	hits, misses, errors, timeouts, aborts, inFlight int64
	latency                                          v1alpha1.LatencyStatus
	totals                                           v1alpha1.MuxTotals
}

func figuresMoved(before, after []figures) bool { return !slices.Equal(before, after) }

func figuresOf(o *v1alpha1.Observation) figures {
	return figures{
		hits: o.Hits, misses: o.Misses, errors: o.Errors, timeouts: o.Timeouts, aborts: o.Aborts,
		inFlight: o.InFlight, latency: o.LatencyMicroseconds,
	}
}

func muxFigures(s *v1alpha1.StorageMuxStatus) []figures {
	var all figures
	if s.Totals != nil {
		all.totals = *s.Totals
	}
	list := []figures{all}
	for i := range s.Members {
		list = append(list, figuresOf(&s.Members[i].Observation))
	}
	return list
}

func backendFigures(s *v1alpha1.StorageBackendStatus) []figures {
	return []figures{figuresOf(&s.Observation)}
}

// withoutFigures keeps of o what is state.
func withoutFigures(o v1alpha1.Observation) v1alpha1.Observation {
	return v1alpha1.Observation{State: o.State, Replicas: o.Replicas, LastTransitionTime: o.LastTransitionTime}
}

func withoutMuxFigures(s *v1alpha1.StorageMuxStatus) *v1alpha1.StorageMuxStatus {
	s = s.DeepCopy()
	s.Totals, s.StatsTime = nil, nil
	for i := range s.Members {
		s.Members[i].Observation = withoutFigures(s.Members[i].Observation)
	}
	return s
}

func withoutBackendFigures(s *v1alpha1.StorageBackendStatus) *v1alpha1.StorageBackendStatus {
	s = s.DeepCopy()
	s.StatsTime = nil
	s.Observation = withoutFigures(s.Observation)
	return s
}

package muxengine

import (
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Topic names what happened.
type Topic string

// The nine topics.
const (
	TopicBackendDown      Topic = "storage-mux.backend.down"
	TopicBackendRecovered Topic = "storage-mux.backend.recovered"
	TopicFailover         Topic = "storage-mux.failover"
	TopicFanoutPartial    Topic = "storage-mux.fanout-partial"
	TopicDrainStarted     Topic = "storage-mux.drain.started"
	TopicDrainCompleted   Topic = "storage-mux.drain.completed"
	TopicBackendAdded     Topic = "storage-mux.backend.added"
	TopicBackendRemoved   Topic = "storage-mux.backend.removed"
	TopicWeightChanged    Topic = "storage-mux.weight.changed"
)

// Event is something that happened in a mux. Topic says which fields are set;
// Mux, Path and Time always are. Events of one member come in the order in
// which they happened.
type Event struct {
	Topic Topic
	// Mux is the name of the mux, Path the path of the mux within the
	// outermost one ("" for that itself).
	Mux, Path string
	Time      time.Time
	// Name is the member's, of all topics but failover and fanout-partial.
	Name string

	// Code and Cause: of backend.down. Cause also of failover.
	Code  storage.Code
	Cause error
	// DownFor: of backend.recovered.
	DownFor time.Duration
	// From, To and AttemptIndex (of the attempt that failed, from 0): of
	// failover.
	From, To     string
	AttemptIndex int
	// Failed names the members that a write did not reach and Causes says
	// why, in the same order; Skipped names those among them that were not
	// called because they were down: of fanout-partial.
	Mode    Mode
	Failed  []string
	Causes  []error
	Skipped []string
	// InFlight: of drain.started. Drained: of drain.completed.
	InFlight int
	Drained  time.Duration
	// Weight: of backend.added, nil without one.
	Weight *int
	// FromWeight and ToWeight: of weight.changed.
	FromWeight, ToWeight int
}

package muxengine

import (
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// State of a member.
type State string

// The states. A member that is draining may be healthy or not.
const (
	StateUp       State = "up"
	StateDown     State = "down"
	StateDraining State = "draining"
)

// Stats are the figures of a mux at one moment.
type Stats struct {
	Name     string
	Mode     Mode
	Keyspace Keyspace
	// TotalCalls counts operations; one that tried two members counts once.
	TotalCalls uint64
	// TotalFailovers counts the advances of walks after transient errors.
	TotalFailovers uint64
	// TotalFanoutPartials counts writes that some members missed.
	TotalFanoutPartials uint64
	// TotalResumes counts bodies that broke and went on from another member,
	// TotalBroken those that could not.
	TotalResumes, TotalBroken uint64
	// Capabilities are the weakest over all members.
	Capabilities storage.Capabilities
	// Members in configured order.
	Members []MemberStats
	// Leaving are the members that the configuration has left out but that
	// still have requests in flight.
	Leaving []MemberStats
}

// MemberStats are the figures of one member. Of each attempt exactly one of
// Hits, Misses, Errors and Aborts is counted, when it ends. Latencies are to
// the first byte; the percentiles come from a sample of 256 attempts.
type MemberStats struct {
	Name string
	// Path is the path of names from the outermost mux, e.g. "mirrors/eu".
	Path string
	ID   string
	// State of the member; WritesDown says that one which is up takes no
	// writes for now (no space left, or too slow).
	State      State
	WritesDown bool

	Hits, Misses, Errors, Timeouts, Aborts uint64

	LastLatency, P50Latency, P99Latency time.Duration

	ConsecutiveFailures int
	LastTransition      time.Time
	InFlight            int
	// LastError is the last failure that counted against the member's
	// health, nil if there was none.
	LastError *LastError
	// Drain is the progress of a removal.
	Drain DrainStats
	// Nested are the figures of a member that is a mux.
	Nested *Stats
}

// LastError is a failure without anything secret in it.
type LastError struct {
	Code    storage.Code
	Message string
	Time    time.Time
}

// DrainStats is how far the removal of a member has come. InFlight of the
// member says what it still waits for.
type DrainStats struct {
	Phase     DrainPhase
	StartedAt time.Time
	Deadline  time.Time
	// Completed: the removal was granted and nothing is in flight any more,
	// nor will be.
	Completed bool
}

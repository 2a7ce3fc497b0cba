package fallbackuri

import (
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
)

// Target is where a candidate that is no fallback URI leads.
type Target struct {
	Storage storage.Storage
	// Key is the object, or the base under which keys live.
	Key string
	// MayBlock says that calls of Storage may outlast their context, as those
	// into a file system that hangs do.
	MayBlock bool
	// Timeout is the candidate's own, 0 for the policy's.
	Timeout time.Duration
}

// Resolver finds what candidates name. It does no I/O and owns what it returns.
type Resolver interface {
	// Resolve returns where a candidate leads. Its error is a *storage.Error
	// that tells the scheme or host it does not know or allow, and nothing of
	// the candidate that may be secret.
	Resolve(candidate string) (Target, error)
}

// ResolverFunc is a function that is a Resolver.
type ResolverFunc func(candidate string) (Target, error)

// Resolve implements Resolver.
func (f ResolverFunc) Resolve(candidate string) (Target, error) { return f(candidate) }

// Options are what a ladder gets from its surroundings. Only Resolver must be
// there.
type Options struct {
	// Name stands for the ladder in events, spans and counters.
	Name     string
	Resolver Resolver
	Policy   Policy
	// Events receives every event on the goroutine that caused it, and must
	// not block.
	Events func(Event)
	// Tracer makes the spans storage-uri.fallback.<operation> and
	// storage-uri.fallback.candidate.
	Tracer trace.Tracer
	// Meter makes CandidatesCounter and LatencyHistogram.
	Meter metric.Meter
	// Spool keeps bodies so that one candidate after another can be given them.
	Spool muxengine.Spool
}

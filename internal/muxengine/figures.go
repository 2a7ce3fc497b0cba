package muxengine

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// figures counts the outcomes of a member's attempts.
type figures struct {
	hits, misses, errors, timeouts, aborts atomic.Uint64

	last      atomic.Int64
	latencies reservoir
}

// count records the outcome of one attempt whose first byte, or failure, came
// after latency.
func (f *figures) count(err error, latency time.Duration, random uint64) {
	code := storage.CodeOf(err)
	switch {
	case err == nil:
		f.hits.Add(1)
	case code == storage.CodeKeyNotFound:
		f.misses.Add(1)
	case storage.Classify(err) == storage.ClassAbort:
		f.aborts.Add(1)
		return
	default:
		f.errors.Add(1)
		if code == storage.CodeBackendTimeout {
			f.timeouts.Add(1)
		}
	}
	f.last.Store(int64(latency))
	f.latencies.add(int64(latency), random)
}

// reservoir is a uniform sample of at most 256 of the values given to it
// (Vitter's algorithm R).
type reservoir struct {
	seen  atomic.Uint64
	slots [256]atomic.Int64
}

func (r *reservoir) add(v int64, random uint64) {
	i := r.seen.Add(1) - 1
	if i >= uint64(len(r.slots)) {
		if i = random % (i + 1); i >= uint64(len(r.slots)) {
			return
		}
	}
	r.slots[i].Store(v)
}

// percentiles returns the values below which the shares p of the sample lie.
func (r *reservoir) percentiles(p ...float64) []time.Duration {
	n := int(min(r.seen.Load(), uint64(len(r.slots))))
	sample := make([]int64, n)
	for i := range sample {
		sample[i] = r.slots[i].Load()
	}
	slices.Sort(sample)
	out := make([]time.Duration, len(p))
	for i, share := range p {
		if n > 0 {
			out[i] = time.Duration(sample[min(int(share*float64(n)), n-1)])
		}
	}
	return out
}

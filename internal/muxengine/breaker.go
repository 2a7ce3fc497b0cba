package muxengine

import (
	"math"
	"sync/atomic"
	"time"
)

// never is a moment that does not come.
const never = math.MaxInt64

// breaker decides whether a member may be asked: up, or down until a moment
// after which one probe may find out. Reads are atomic; changes are made under
// the lock of the state that the breaker belongs to. Moments are nanoseconds
// since the mux was made.
type breaker struct {
	down    atomic.Bool
	probing atomic.Bool
	until   atomic.Int64
	// epoch rises with every change of down, and with it every verdict
	// formed before becomes void: a burst of failures counts once.
	epoch    atomic.Uint64
	failures atomic.Int64
	since    atomic.Int64
	// checkOnly: an active check took the member down, and only a check
	// brings it back.
	checkOnly atomic.Bool
}

// verdict is the right to judge: what an attempt knew when it began.
type verdict struct {
	epoch uint64
	probe bool
}

// begin returns the right of an attempt that begins now on a member that is up.
func (b *breaker) begin() verdict { return verdict{epoch: b.epoch.Load()} }

// due reports whether a probe may be claimed.
func (b *breaker) due(now int64) bool {
	return b.down.Load() && !b.probing.Load() && now >= b.until.Load()
}

// claim takes the one probe of a member that is due, or with force of one that
// is down at all. The claimant ends it with fail, succeed or release.
func (b *breaker) claim(now int64, force bool) (verdict, bool) {
	epoch := b.epoch.Load()
	if !b.down.Load() || !force && now < b.until.Load() || !b.probing.CompareAndSwap(false, true) {
		return verdict{}, false
	}
	return verdict{epoch: epoch, probe: true}, true
}

// release ends a probe without a verdict.
func (b *breaker) release(v verdict) {
	if v.probe {
		b.probing.Store(false)
	}
}

// fail records a failure at now. It reports whether the failure counted and
// whether it took the member down.
func (b *breaker) fail(v verdict, now int64, base, limit, retryAfter time.Duration) (counted, tookDown bool) {
	defer b.release(v)
	wasDown := b.down.Load()
	if v.epoch != b.epoch.Load() || b.checkOnly.Load() || wasDown && !v.probe {
		return false, false
	}
	before := b.failures.Add(1) - 1
	b.until.Store(now + int64(cooldown(before, base, limit, retryAfter)))
	if !wasDown {
		b.change(true, now)
	}
	return true, !wasDown
}

// succeed records a success and reports whether it brought the member up, and
// since when it had been down.
func (b *breaker) succeed(v verdict, now int64) (recovered bool, since int64) {
	defer b.release(v)
	if !v.probe || v.epoch != b.epoch.Load() || !b.down.Load() || b.checkOnly.Load() {
		return false, 0
	}
	return true, b.recover(now)
}

// failCheck records that an active check failed.
func (b *breaker) failCheck(now int64) (tookDown bool) {
	b.failures.Add(1)
	b.checkOnly.Store(true)
	b.until.Store(never)
	if b.down.Load() {
		return false
	}
	b.change(true, now)
	return true
}

// passCheck records that an active check passed. It does not cut the cooldown
// short that a failed request began.
func (b *breaker) passCheck(now int64) (recovered bool, since int64) {
	if !b.down.Load() || !b.checkOnly.Load() && now < b.until.Load() {
		return false, 0
	}
	return true, b.recover(now)
}

func (b *breaker) recover(now int64) (since int64) {
	since = b.since.Load()
	b.failures.Store(0)
	b.until.Store(0)
	b.checkOnly.Store(false)
	b.change(false, now)
	return since
}

func (b *breaker) change(down bool, now int64) {
	b.down.Store(down)
	b.since.Store(now)
	b.epoch.Add(1)
}

// cooldown is how long a member stays down after a failure that followed upon
// before others. What the store asked for wins if it is longer.
func cooldown(before int64, base, limit, retryAfter time.Duration) time.Duration {
	return min(max(base<<min(before, 6), retryAfter), limit)
}

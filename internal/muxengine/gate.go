package muxengine

import (
	"context"
	"sync/atomic"
	"time"
)

// gate counts what is in flight on a member and keeps it under a limit.
type gate struct {
	inFlight atomic.Int64
	limit    atomic.Int64
	waiting  atomic.Int64
	// freed wakes one of those who wait.
	freed chan struct{}
}

// writeWait is how long a write waits for a member that is at its limit.
const writeWait = time.Second

// enter counts one request in, unless the limit is reached.
func (g *gate) enter() bool {
	limit := g.limit.Load()
	if limit <= 0 {
		g.inFlight.Add(1)
		return true
	}
	for {
		n := g.inFlight.Load()
		if n >= limit {
			return false
		}
		if g.inFlight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// wait is enter for those who may wait: it gives up after writeWait or when ctx
// ends.
func (g *gate) wait(ctx context.Context) bool {
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	timer := time.NewTimer(writeWait)
	defer timer.Stop()
	for {
		if g.enter() {
			g.wake()
			return true
		}
		select {
		case <-g.freed:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// leave counts one request out and returns how many are left.
func (g *gate) leave() int64 {
	n := g.inFlight.Add(-1)
	g.wake()
	return n
}

func (g *gate) wake() {
	if g.waiting.Load() == 0 {
		return
	}
	select {
	case g.freed <- struct{}{}:
	default:
	}
}

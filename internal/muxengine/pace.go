package muxengine

import (
	"sync"
	"sync/atomic"
	"time"
)

// pacer drops members from a fan-out that take what is there for them at less
// than slowRate for slowTime, so that one slow member costs the others nothing.
type pacer struct {
	content *content

	mu       sync.Mutex
	attempts []*paced
	timer    *time.Timer
	stopped  bool
}

// paced is one member's progress as the pacer saw it last.
type paced struct {
	attempt *attempt
	since   time.Time
	taken   int64
}

// pace is how far a member has read the body.
type pace struct{ taken atomic.Int64 }

// newPacer returns the pacer of a write, which does nothing for one without body.
func newPacer(c *call) *pacer {
	p := &pacer{}
	if body, ok := c.req.body.(*content); ok {
		body.widen(fanOutRing)
		p.content = body
	}
	return p
}

// begun is told of each attempt.
func (p *pacer) begun(a *attempt) {
	if p.content == nil || a.m.leaf == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts = append(p.attempts, &paced{attempt: a, since: time.Now()})
	if p.timer == nil && !p.stopped {
		p.timer = time.AfterFunc(slowTime/8, p.look)
	}
}

// look compares what each member has taken with what it could have.
func (p *pacer) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	now, there := time.Now(), p.content.length()
	for _, one := range p.attempts {
		taken := one.attempt.pace.taken.Load()
		elapsed := now.Sub(one.since)
		switch {
		case taken >= there, taken-one.taken >= int64(elapsed.Seconds()*slowRate) && elapsed >= slowTime:
			one.since, one.taken = now, taken
		case elapsed >= slowTime:
			one.attempt.dropSlow()
		}
	}
	p.timer.Reset(slowTime / 8)
}

func (p *pacer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

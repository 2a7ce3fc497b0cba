package muxengine

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// pacer drops members from a fan-out that take what is there for them at less
// than slowRate for slowTime while another is slowLag ahead, so that one slow
// member costs the others nothing.
type pacer struct {
	// active: there is a body to take.
	active bool

	mu       sync.Mutex
	attempts []*paced
	timer    *time.Timer
	stopped  bool
}

// paced is one member's progress as the pacer saw it last.
type paced struct {
	attempt *attempt
	// patience is how long it may be slow. A member on trial was too slow before:
	// writes that try it are not to wait for it as those did.
	patience time.Duration
	// busy is the time that the member had spent on what it was given,
	// taken the bytes that it had been given.
	busy, taken int64
}

// pace is how far a member has read the body. While it asks for more, data does
// not wait for it: that time is the client's.
type pace struct {
	taken, waited atomic.Int64
	// asking is since when it has been asking, 0 if it is not.
	asking atomic.Int64
}

// busy is the time between began and now in which the member was not asking.
func (p *pace) busy(began, now int64) int64 {
	waited := p.waited.Load()
	if asking := p.asking.Load(); asking != 0 {
		waited += now - asking
	}
	return now - began - waited
}

// asks notes that the member asks for more of the body, and with it the muxes
// around it.
func (a *attempt) asks(now int64) {
	for ; a != nil; a = a.call.parent {
		a.pace.asking.Store(now)
	}
}

// takes notes that the member got n bytes after waiting for them, and whether
// those were the last.
func (a *attempt) takes(n, waited int64, last bool) {
	for ; a != nil; a = a.call.parent {
		if last {
			a.sentAll.Store(true)
		}
		a.pace.taken.Add(n)
		a.pace.waited.Add(waited)
		a.pace.asking.Store(0)
	}
}

// newPacer returns the pacer of a write, which does nothing for one without body.
func newPacer(c *call) *pacer {
	p := &pacer{}
	if body, ok := c.req.body.(*content); ok {
		body.widen(fanOutRing)
		p.active = true
	}
	return p
}

// begun is told of each attempt.
func (p *pacer) begun(a *attempt) {
	if !p.active {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	one := &paced{attempt: a, patience: slowTime}
	if a.claim.space.probe {
		one.patience = trialTime
	}
	p.attempts = append(p.attempts, one)
	if p.timer == nil && !p.stopped {
		p.timer = time.AfterFunc(trialTime, p.look)
	}
}

// look compares what each member has taken with the time it took for that.
func (p *pacer) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	lead := p.lead()
	for _, one := range p.attempts {
		a := one.attempt
		busy, taken := a.pace.busy(a.started, a.call.node.mux.now()), a.pace.taken.Load()
		switch slow := taken-one.taken < slowRate*(busy-one.busy)/int64(time.Second); {
		case a.sentAll.Load():
			continue
		case lead-taken < slowLag:
			// It holds nobody up.
		case busy-one.busy < int64(one.patience):
			continue
		case slow:
			a.dropSlow()
		}
		one.busy, one.taken = busy, taken
	}
	p.timer.Reset(trialTime)
}

// lead is how far the foremost member has read; one that has read it all is far
// ahead of everybody.
func (p *pacer) lead() int64 {
	lead := int64(0)
	for _, one := range p.attempts {
		if one.attempt.sentAll.Load() {
			return math.MaxInt64
		}
		lead = max(lead, one.attempt.pace.taken.Load())
	}
	return lead
}

func (p *pacer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	if p.timer != nil {
		p.timer.Stop()
	}
}

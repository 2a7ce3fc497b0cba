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
	// body is what there is to take, nil if there is nothing.
	body *content

	mu       sync.Mutex
	awaited  []*place
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
		p.body = body
	}
	return p
}

// place is that of one member among those which are given a body at once. Until it
// is taken the others must not run away with a body that is not kept.
type place struct {
	pace *pacer
	once sync.Once
}

// places returns n places.
func (p *pacer) places(n int) []*place {
	places := make([]*place, n)
	if p == nil || p.body == nil {
		return places
	}
	p.body.await(n)
	for i := range places {
		places[i] = &place{pace: p}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.awaited = append(p.awaited, places...)
	return places
}

// begun is told of the member's attempt.
func (l *place) begun(a *attempt) {
	if l != nil {
		a.place = l
		l.pace.begun(a)
	}
}

// taken notes that the member has begun to read, or that it never will.
func (l *place) taken() {
	if l != nil {
		l.once.Do(func() { l.pace.body.await(-1) })
	}
}

// begun is told of each attempt.
func (p *pacer) begun(a *attempt) {
	if p.body == nil {
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
	if p.attempts[0].attempt.call.node.mux.now()-p.attempts[0].attempt.started >= int64(crowdedTime) {
		for _, l := range p.awaited {
			l.taken()
		}
	}
	lead, crowded := p.lead(), p.body.isCrowded()
	for _, one := range p.attempts {
		a := one.attempt
		busy, taken := a.pace.busy(a.started, a.call.node.mux.now()), a.pace.taken.Load()
		patience := one.patience
		if crowded {
			patience = min(patience, crowdedTime)
		}
		switch slow := taken-one.taken < slowRate*(busy-one.busy)/int64(time.Second); {
		case a.sentAll.Load():
			continue
		case lead-taken < slowLag:
			// It holds nobody up.
		case busy-one.busy < int64(patience):
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

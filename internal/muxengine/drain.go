package muxengine

import (
	"sync/atomic"
	"time"
)

// drainage is the progress of a member's removal, under its state's mu.
type drainage struct {
	startedAt time.Time
	deadline  time.Time
	timer     *time.Timer
	completed bool
	// leaving: the configuration has left the member out.
	leaving bool
	removed bool
	// wait is what calls of Drain wait for, whenEmpty what they want done
	// once nothing is in flight any more.
	wait      *drainWait
	whenEmpty func()
}

// drainWait ends when the member has been removed, or is back.
type drainWait struct {
	over    chan struct{}
	removed atomic.Bool
}

// setDrain moves the member to what the configuration asks for. Phase and
// deadline may change in any direction; adding a member again ends its drain.
func (st *state) setDrain(want Drain, leaving bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	d := &st.drain
	was := DrainPhase(st.phase.Load())
	st.phase.Store(int32(want.Phase))
	d.leaving = leaving
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.deadline = want.Deadline
	if want.Phase != DrainGranted {
		d.completed = false
		st.eachBelow(func(below *state) { below.running.reopen() })
	}
	if want.Phase == DrainNone {
		if was != DrainNone {
			st.transition.Store(st.mux.now())
		}
		d.startedAt = time.Time{}
		d.endWait()
		st.publish()
		return
	}
	if was == DrainNone {
		d.startedAt = time.Now()
		st.transition.Store(st.mux.now())
		st.publish()
		st.emit(Event{Topic: TopicDrainStarted, InFlight: int(st.inFlight.Load())})
	}
	st.publish()
	if want.Phase == DrainGranted {
		if !want.Deadline.IsZero() && !d.completed {
			d.timer = time.AfterFunc(time.Until(want.Deadline), st.cancelRunning)
		}
		st.tryComplete()
	}
}

// awaitDrain returns what to wait for until the member has gone. whenEmpty is
// called, under mu, once the drain has completed; of several the first.
func (st *state) awaitDrain(whenEmpty func()) *drainWait {
	st.mu.Lock()
	defer st.mu.Unlock()
	d := &st.drain
	if d.wait == nil {
		d.wait, d.whenEmpty = &drainWait{over: make(chan struct{})}, whenEmpty
		if d.completed {
			whenEmpty()
		}
	}
	return d.wait
}

func (d *drainage) endWait() {
	if d.wait != nil {
		d.wait.removed.Store(d.removed)
		close(d.wait.over)
	}
	d.wait, d.whenEmpty = nil, nil
}

// cancelRunning ends what is in flight on the member and on the leaves of the
// mux that it may be.
func (st *state) cancelRunning() {
	st.eachBelow(func(below *state) { below.running.cancel() })
}

// eachBelow calls f for the state and those of all members below it.
func (st *state) eachBelow(f func(*state)) {
	f(st)
	if n := st.member.Load().nested; n != nil {
		n.walkMembers(func(b *member) { f(b.state) })
	}
}

// settleDrain is called when the last request in flight has gone.
func (st *state) settleDrain() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.tryComplete()
}

func (st *state) tryComplete() {
	d := &st.drain
	if DrainPhase(st.phase.Load()) != DrainGranted || st.inFlight.Load() != 0 {
		return
	}
	if !d.completed {
		d.completed = true
		if d.timer != nil {
			d.timer.Stop()
			d.timer = nil
		}
		st.publish()
		st.emit(Event{Topic: TopicDrainCompleted, Drained: time.Since(d.startedAt)})
		if d.whenEmpty != nil {
			d.whenEmpty()
		}
	}
	if d.leaving && !d.removed {
		d.removed = true
		if st.idle != nil {
			st.idle.Stop()
		}
		st.emit(Event{Topic: TopicBackendRemoved})
		d.endWait()
		st.mux.forgetState(st)
	}
}

// publish makes the progress visible to Stats, which takes no lock.
func (st *state) publish() {
	st.drained.Store(&DrainStats{
		Phase: DrainPhase(st.phase.Load()), StartedAt: st.drain.startedAt,
		Deadline: st.drain.deadline, Completed: st.drain.completed,
	})
}

// revive takes a member back that the configuration names again, unless it has
// been removed already.
func (st *state) revive() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.drain.leaving = false
	return !st.drain.removed
}

// stopTimer ends the waits for the deadline and for the idle probe.
func (st *state) stopTimer() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.idle != nil {
		st.idle.Stop()
	}
	if st.drain.timer != nil {
		st.drain.timer.Stop()
	}
}

package muxengine

import (
	"errors"
	"net/http"

	"github.com/suaveplan/storagemux/internal/storage"
)

// walk tries one member after another until one succeeds or gives an answer
// that any other would give too.
func (c *call) walk() (reply, error) {
	c.prepare()
	return c.walkOn()
}

// walkOn goes on with the members that were not tried yet.
func (c *call) walkOn() (reply, error) {
	for range len(c.node.members) + 2 {
		m, force, ok := c.next()
		if !ok || c.ctx.Err() != nil {
			break
		}
		if c.req.op.carriesBody() && c.last != nil && !c.req.body.Replayable() {
			return reply{}, c.notKept()
		}
		cl, answer := c.admit(m, c.req.op, force)
		switch {
		case answer == isFull && c.req.op.writes() && c.ctx.Err() == nil:
			// A write has its place; it has waited for it.
			return reply{}, c.busy()
		case answer != admitted:
			c.passOver(answer)
			continue
		}
		c.announce(m)
		rep, err := c.attempt(m, cl)
		switch {
		case err == nil:
			c.winner = m
			return rep, nil
		case c.movesOn(err):
			c.absent.add(m.index)
		case storage.Classify(err) != storage.ClassTransient:
			return reply{}, err
		case outcomeOf(err) == storage.OutcomeUnknown && (c.req.conditional() || c.req.op == opSetPartial):
			return reply{}, c.unknown(err)
		default:
			c.note(m, err)
		}
	}
	return c.exhausted()
}

// attempt asks m, which has admitted the call, and keeps what a body needs to
// be read.
func (c *call) attempt(m *member, cl claim) (reply, error) {
	c.attempts++
	memory := &c.first
	if memory.call != nil {
		memory = &attempt{}
	}
	a := c.beginIn(memory, m, cl, &c.req, c.attempts-1, c.attempts)
	rep, err := a.run()
	switch {
	case err != nil || rep.obj == nil:
	case c.req.op == opResume && c.stream.call != nil:
		c.stream.attach(a, rep.obj)
	default:
		rep.obj = c.open(a, rep.obj)
	}
	return rep, err
}

// admit asks m to take a request of op. Before a write a member that is down is
// asked whether it is alive: a user's upload is not the experiment.
func (c *call) admit(m *member, op operation, force bool) (claim, admission) {
	st := m.state
	cl, answer := st.admit(op, force)
	if answer == isFull && op.writes() {
		return st.waitRoom(c.ctx, op)
	}
	if answer == admitted && cl.health.probe && op.writes() {
		if !m.probeBeforeWrite(c.ctx, cl.health) {
			st.space.release(cl.space)
			st.release()
			return claim{}, isDown
		}
		cl.health = st.health.begin()
	}
	return cl, answer
}

// passOver remembers why a member did not take the request.
func (c *call) passOver(answer admission) {
	c.full = c.full || answer == isFull
	c.leaving = c.leaving || answer == isDraining
}

// movesOn reports whether err of one member leaves the question to the others.
func (c *call) movesOn(err error) bool {
	switch {
	case c.req.op == opResume:
		return errors.Is(err, storage.ErrKeyNotFound) || errors.Is(err, storage.ErrPreconditionFailed)
	case c.node.spread():
		// Not errors.Is: an outage below may have another's not-found as
		// one of its causes.
		return !c.req.op.writes() && storage.CodeOf(err) == storage.CodeKeyNotFound
	}
	return false
}

// note remembers a transient failure.
func (c *call) note(m *member, err error) {
	c.last, c.lastMember, c.moved = err, m, true
	c.outcome = max(c.outcome, outcomeOf(err))
	c.failed.add(m.index)
}

// announce tells that the walk moves on to m after a failure.
func (c *call) announce(m *member) {
	if !c.moved {
		return
	}
	c.moved = false
	c.node.core.failovers.Add(1)
	c.node.emit(Event{
		Topic: TopicFailover, From: c.lastMember.name, To: m.name,
		AttemptIndex: c.attempts - 1, Cause: c.last, Mode: c.node.cfg.Mode,
	})
}

// exhausted is the outcome of a walk that no member has ended.
func (c *call) exhausted() (reply, error) {
	switch {
	case c.ctx.Err() != nil:
		return reply{}, c.aborted()
	case c.absent != bitset{} && c.node.absentEverywhere(&c.absent):
		e := storage.Errorf(storage.CodeKeyNotFound, c.req.op.String(), "no backend holds %q", c.req.key)
		e.Mode, e.AttemptCount = string(c.node.cfg.Mode), c.attempts
		return reply{}, e
	case c.absent != bitset{}:
		return reply{}, c.allDown("the key is on none of the backends that could be asked, and not all could")
	case c.full && c.last == nil:
		return reply{}, c.busy()
	case c.attempts == 0:
		return reply{}, c.allDown("no backend is up")
	default:
		return reply{}, c.allDown("every backend that could be tried has failed")
	}
}

// absentEverywhere reports whether every member that may hold keys is in absent.
func (n *node) absentEverywhere(absent *bitset) bool {
	for i, m := range n.members {
		if !absent.has(uint8(i)) && !m.granted() {
			return false
		}
	}
	return true
}

// unknown is the error of a write that may have taken effect and must not be
// made again.
func (c *call) unknown(err error) error {
	e := storage.Errorf(storage.CodeUnavailable, c.req.op.String(), "the backend did not say whether the write was done").WithCause(err)
	e.Mode, e.Status, e.Outcome, e.AttemptCount = string(c.node.cfg.Mode), http.StatusServiceUnavailable, storage.OutcomeUnknown, c.attempts
	return e
}

// notKept is the error of a write whose body is gone.
func (c *call) notKept() error {
	e := storage.Errorf(storage.CodeUnavailable, c.req.op.String(), "the body was too large to be kept and cannot be sent to another backend").WithCause(c.last)
	e.Mode, e.Status, e.Outcome, e.AttemptCount = string(c.node.cfg.Mode), http.StatusServiceUnavailable, c.outcome, c.attempts
	return e
}

package muxengine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/suaveplan/storagemux/internal/storage"
)

// call is one operation on one mux.
type call struct {
	node *node
	// parent is the attempt of the mux around this one, nil for a caller's.
	parent *attempt
	ctx    context.Context
	req    request
	pick   pick
	span   trace.Span

	// front is a member that is down and due, whose turn it would be if it
	// were up: the call is its probe.
	front *member
	// last is the error of the latest attempt that failed with a transient
	// error, made on lastMember; moved says that its event is still due.
	last       error
	lastMember *member
	moved      bool
	// outcome is what is known about the effect of a write whose attempts
	// have failed so far.
	outcome storage.Outcome

	// winner is the member whose answer was taken.
	winner *member

	attempts int
	// first is the memory of a walk's first attempt.
	first attempt
	// failed are the members that failed in this call, absent those that
	// hold nothing under the key.
	failed, absent bitset
	full           bool
	// leaving: a member was passed over because it is being removed.
	leaving bool
	// forced: a member was tried before its time.
	forced bool

	stream stream
	obj    storage.Object
}

// do executes req on the mux; parent is the attempt that it is part of.
func (n *node) do(ctx context.Context, req *request, parent *attempt) (reply, error) {
	c := &call{node: n, ctx: ctx, req: *req, parent: parent}
	n.core.calls.Add(1)
	c.startSpan()
	rep, err := c.execute()
	for range maxRestarts {
		again := c.overtaken(err, req)
		if again == nil {
			break
		}
		c = again
		rep, err = c.execute()
	}
	if err != nil || rep.obj == nil {
		c.endSpan(err)
	}
	return rep, err
}

// maxRestarts bounds how often one call begins anew because of reloads.
const maxRestarts = 3

// overtaken returns the call to make in place of c, if that ended with err for
// want of members which have left since it began, and others have come.
func (c *call) overtaken(err error, req *request) *call {
	n := c.node
	switch {
	case err == nil, storage.Classify(err) != storage.ClassTransient, c.ctx.Err() != nil,
		!c.leaving && !errors.Is(err, storage.ErrBackendDraining),
		c.parent != nil && c.parent.call.node.mux == n.mux,
		outcomeOf(err) == storage.OutcomeUnknown,
		req.body != nil && !req.body.Replayable():
		return nil
	}
	now := n.mux.node.Load()
	if now.cfg == n.cfg {
		return nil
	}
	return &call{node: now, parent: c.parent, ctx: c.ctx, req: *req, span: c.span}
}

func (c *call) execute() (reply, error) {
	switch {
	case c.ctx.Err() != nil:
		return reply{}, c.aborted()
	case c.node.mux.closed.Load():
		return reply{}, c.allDown("the mux is closed")
	case c.req.op.continues():
		return c.executeUpload()
	case c.req.op == opListUploads:
		return c.listUploads()
	case c.node.spread():
		return c.executeSpread()
	default:
		return c.byMode()
	}
}

// byMode executes the request in the shape that the mode names for it.
func (c *call) byMode() (reply, error) {
	switch c.shape() {
	case race:
		return c.race()
	case fanOut:
		return c.fanOut()
	default:
		return c.walk()
	}
}

func (c *call) shape() executor {
	if c.req.op == opResume || c.pinned() != nil {
		return walk
	}
	return c.node.mode.executor(c.req.op)
}

// prepare sets up the choice among the members that are up, and looks for those
// that are down but may be probed.
func (c *call) prepare() {
	n := c.node
	p := &c.pick
	p.node, p.req = n, &c.req
	p.set = n.reads
	if c.req.op.needsSpace() {
		p.set = n.writes
	}
	if c.shape() != walk {
		// Everybody takes part, those that are due as well.
		return
	}
	if m := c.pinned(); m != nil {
		c.front = m
		p.tried.add(m.index)
		return
	}
	now := n.mux.now()
	if now >= n.due || c.req.op.needsSpace() && now >= n.spaceDue {
		c.lookForDue(now)
	}
}

// lookForDue makes the call the probe of a member that is due, if the mode
// would choose that member first were it up. The others that are due are probed
// in the background.
func (c *call) lookForDue(now int64) {
	n, p := c.node, &c.pick
	var up bitset
	for _, i := range p.set.index {
		up.add(i)
	}
	var index []uint8
	for i, m := range n.members {
		if up.has(uint8(i)) || c.mayProbe(m, now) {
			index = append(index, uint8(i))
		}
	}
	if len(index) > len(p.set.index) {
		some := p.set
		p.set = newSet(n.mode, n.members, index)
		if i, ok := p.choose(); ok && !up.has(i) {
			c.front = n.members[i]
		} else {
			p.tried = bitset{}
		}
		p.set, p.tries, p.draws = some, 0, 0
	}
	for _, m := range n.members {
		if m != c.front && !m.granted() {
			m.probeInBackground(now)
		}
	}
}

func (c *call) mayProbe(m *member, now int64) bool {
	return m.state.open(c.req.op) && (c.node.mode.takes == nil || c.node.mode.takes(m)) && m.probeable(c.req.op, now)
}

// next returns the member to try next. With force it is one that is down before
// its time.
func (c *call) next() (m *member, force, ok bool) {
	if c.front != nil {
		m, c.front = c.front, nil
		return m, false, true
	}
	if i, ok := c.pick.choose(); ok {
		return c.node.members[i], false, true
	}
	if c.node.cfg.Health.WhenAllDown == WhenAllDownTry && len(c.pick.set.index) == 0 && c.attempts == 0 && !c.forced {
		c.forced = true
		if m := c.node.soonest(c.req.op); m != nil {
			return m, true, true
		}
	}
	return nil, false, false
}

// soonest returns the member that recovers first of those that are down.
func (n *node) soonest(op operation) *member {
	var best *member
	at := int64(never)
	for _, m := range n.members {
		if !m.state.open(op) || n.mode.takes != nil && !n.mode.takes(m) {
			continue
		}
		due, spaceDue := m.dueAt()
		if op.needsSpace() && spaceDue != never {
			due = spaceDue
		}
		if best == nil || due < at {
			best, at = m, due
		}
	}
	return best
}

// aborted is the error of a call whose caller has left.
func (c *call) aborted() *storage.Error {
	e := storage.Errorf(storage.CodeBackendAborted, c.req.op.String(), "the caller left").WithCause(context.Cause(c.ctx))
	e.Mode, e.AttemptCount = string(c.node.cfg.Mode), c.attempts
	return e
}

// allDown is the error of a call that no member could serve.
func (c *call) allDown(format string, args ...any) *storage.Error {
	e := &storage.Error{
		Code: storage.CodeAllBackendsDown, Op: c.req.op.String(), Mode: string(c.node.cfg.Mode),
		AttemptCount: c.attempts, Status: http.StatusServiceUnavailable,
		Message: fmt.Sprintf(format, args...), Cause: c.last, RetryAfter: c.node.retryAfter(), Outcome: c.outcome,
	}
	if c.attempts > 0 {
		e.AttemptIndex = c.attempts - 1
	}
	if c.last == nil && c.leaving {
		e.Cause = isLeaving(c.req.op)
	}
	return e
}

// retryAfter is how long a client may wait until a member may be up again.
func (n *node) retryAfter() time.Duration {
	if n.due == never {
		return time.Second
	}
	return max(time.Second, time.Duration(n.due-n.mux.now()))
}

// busy is the error of a call for which every member was at its limit.
func (c *call) busy() *storage.Error {
	e := storage.Errorf(storage.CodeThrottled, c.req.op.String(), "every backend has as many requests in flight as it may have")
	e.Mode, e.Status, e.RetryAfter, e.AttemptCount = string(c.node.cfg.Mode), http.StatusServiceUnavailable, time.Second, c.attempts
	return e
}

package muxengine

import (
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// fanOut writes to every member at once and judges every outcome: where the
// mode has an origin, its outcome is the outcome; else one success is enough.
func (c *call) fanOut() (reply, error) {
	c.prepare()
	members, skipped := c.recipients()
	if len(members) == 0 {
		return reply{}, c.allDown("no backend is up")
	}
	if c.node.mode.originDecides && members[0].index != 0 {
		return reply{}, c.allDown("the origin is down")
	}
	outcomes := append(c.writeAll(members), skipped...)
	return c.verdictOf(outcomes)
}

// recipients are the members to write to, in order, and an outcome for each
// that is down.
func (c *call) recipients() (members []*member, skipped []outcome) {
	chosen := map[*member]bool{}
	for _, m := range c.everyone() {
		chosen[m] = true
		members = append(members, m)
	}
	for _, m := range c.node.members {
		if !chosen[m] && m.state.open(c.req.op) {
			skipped = append(skipped, outcome{m: m, skipped: true, err: c.isDown(m, c.req.op, 0, 0)})
		}
	}
	return members, skipped
}

// writeAll makes the write of all members at once. Where one of them decides, it
// goes there first, and to the others only after its success.
func (c *call) writeAll(members []*member) []outcome {
	pace := newPacer(c)
	defer pace.stop()
	var outcomes []outcome
	for c.firstDecides(members) {
		decided := c.askAll(members[:1], &c.req, pace)[0]
		outcomes, members = append(outcomes, decided), members[1:]
		switch {
		case decided.err == nil && c.req.conditional():
			return append(outcomes, c.follow(decided, members, pace)...)
		case decided.err == nil:
			return append(outcomes, c.askAll(members, &c.req, pace)...)
		case !decided.skipped || c.node.mode.originDecides:
			return outcomes
		}
	}
	return append(outcomes, c.askAll(members, &c.req, pace)...)
}

// firstDecides reports whether the others wait for the first member: it
// arbitrates over a precondition, or is an origin that may still be down.
func (c *call) firstDecides(members []*member) bool {
	return len(members) > 0 && (c.req.conditional() || c.node.mode.originDecides && !members[0].upForWrites())
}

// verdictOf makes one outcome of all.
func (c *call) verdictOf(outcomes []outcome) (reply, error) {
	var won *outcome
	var failed []outcome
	for i := range outcomes {
		o := &outcomes[i]
		switch {
		case o.err != nil:
			failed = append(failed, *o)
		case won == nil || o.m.index < won.m.index:
			won = o
		}
	}
	switch {
	case c.ctx.Err() != nil && won == nil:
		return reply{}, c.aborted()
	case c.req.op.carriesBody() && c.req.body.(*content).failure() != nil:
		return reply{}, bodyError(c.req.op, c.req.body.(*content).failure())
	case c.node.mode.originDecides && (won == nil || won.m.index != 0):
		return reply{}, c.originFailed(outcomes)
	case won == nil:
		return reply{}, c.refusal(failed)
	}
	c.winner = won.m
	rep := joinUploads(won.rep, outcomes)
	if len(failed) == 0 || !c.req.op.changes() {
		return rep, nil
	}
	err := c.partial(failed)
	if c.node.cfg.OnFanoutPartial == FanoutPartialFail {
		return reply{}, err
	}
	return rep, nil
}

// originFailed surfaces the origin's own answer, or its outage.
func (c *call) originFailed(outcomes []outcome) error {
	for _, o := range outcomes {
		if o.m.index != 0 {
			continue
		}
		switch {
		case storage.Classify(o.err) != storage.ClassTransient:
			return o.err
		case outcomeOf(o.err) == storage.OutcomeUnknown && c.req.op.changes():
			return c.unknown(o.err)
		}
		c.last = o.err
	}
	return c.allDown("the origin has failed")
}

// partial tells of a write that some members missed, and returns it as an error.
func (c *call) partial(failed []outcome) error {
	e := Event{Topic: TopicFanoutPartial, Mode: c.node.cfg.Mode}
	for _, o := range failed {
		e.Failed = append(e.Failed, o.m.name)
		e.Causes = append(e.Causes, o.err)
		if o.skipped {
			e.Skipped = append(e.Skipped, o.m.name)
		}
	}
	c.node.core.partials.Add(1)
	c.node.emit(e)
	err := storage.Errorf(storage.CodeWriteFanoutPartial, c.req.op.String(), "the write did not reach %q", e.Failed)
	err.Mode, err.AttemptCount, err.Cause = string(c.node.cfg.Mode), c.attempts, failed[0].err
	return err
}

// The pace that a member must keep in a fan-out while there is data for it:
// slowRate, over slowTime, or crowdedTime where the others wait for it.
const (
	slowRate    = 64 << 10
	slowTime    = 2 * time.Second
	crowdedTime = slowTime / 2
	trialTime   = slowTime / 8
	slowLag     = 128 << 10
	fanOutRing  = 1 << 20
)

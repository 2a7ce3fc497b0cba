package muxengine

import (
	"slices"
	"sync/atomic"

	"github.com/suaveplan/storagemux/internal/storage"
)

// race asks every member that may be chosen at once. The first success wins;
// the others are cancelled, and whatever they still open is closed.
func (c *call) race() (reply, error) {
	c.prepare()
	runners := c.everyone()
	r := &contest{
		req: c.req, done: make(chan outcome, len(runners)),
		attempts: make([]*attempt, 0, len(runners)),
	}
	room := make([]attempt, len(runners))
	for _, m := range runners {
		cl, answer := c.admit(m, c.req.op, c.forced)
		if answer != admitted {
			c.passOver(answer)
			continue
		}
		i := len(r.attempts)
		r.attempts = append(r.attempts, c.beginIn(&room[i], m, cl, &r.req, i, len(runners)))
	}
	c.attempts = len(r.attempts)
	for _, a := range r.attempts {
		go r.run(a)
	}
	return c.collect(r)
}

// everyone returns the members of a race or a fan-out: those that are up, those
// whose probe is due, and, if there are none, the one that recovers first where
// the configuration wants that tried.
func (c *call) everyone() []*member {
	now := c.node.mux.now()
	list := make([]*member, 0, len(c.node.members))
	for i, m := range c.node.members {
		if slices.Contains(c.pick.set.index, uint8(i)) || m == c.front || c.mayProbe(m, now) {
			list = append(list, m)
		}
	}
	if len(list) == 0 && c.node.cfg.Health.WhenAllDown == WhenAllDownTry {
		if m := c.node.soonest(c.req.op); m != nil {
			c.forced = true
			list = append(list, m)
		}
	}
	return list
}

// contest is a race that is being run. Attempts that have lost may outlast the
// call, so that they share nothing with it.
type contest struct {
	req      request
	attempts []*attempt
	decided  atomic.Bool
	done     chan outcome
}

func (r *contest) run(a *attempt) {
	rep, err := a.run()
	final := err == nil || decides(err)
	if final && !r.decided.CompareAndSwap(false, true) {
		if rep.obj != nil {
			_ = rep.obj.Body.Close()
			a.end(nil)
		}
		return
	}
	r.done <- outcome{m: a.m, rep: rep, err: err, attempt: a}
}

// collect waits for the winner, or for everyone's refusal.
func (c *call) collect(r *contest) (reply, error) {
	var refused []outcome
	for range r.attempts {
		o := <-r.done
		if o.err != nil && !decides(o.err) {
			refused = append(refused, o)
			continue
		}
		for _, a := range r.attempts {
			if a != o.attempt {
				a.lose()
			}
		}
		if o.err != nil {
			return reply{}, o.err
		}
		c.winner = o.m
		if o.rep.obj != nil {
			o.rep.obj = c.open(o.attempt, o.rep.obj)
		}
		return o.rep, nil
	}
	return reply{}, c.lostBy(refused)
}

// lostBy is the outcome of a race without a winner. A key is not found only if
// nobody failed, and in keyspace spread only if everybody was asked.
func (c *call) lostBy(refused []outcome) error {
	switch {
	case c.ctx.Err() != nil:
		return c.aborted()
	case len(refused) == 0 && c.full:
		return c.busy()
	case len(refused) == 0:
		return c.allDown("no backend is up")
	}
	if c.node.spread() {
		for _, o := range refused {
			if storage.CodeOf(o.err) == storage.CodeKeyNotFound {
				c.absent.add(o.m.index)
			}
		}
		if (c.absent != bitset{}) && !c.node.absentEverywhere(&c.absent) {
			_ = c.refusal(refused)
			return c.allDown("the key is on none of the backends that could be asked, and not all could")
		}
	}
	return c.refusal(refused)
}

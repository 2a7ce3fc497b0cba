package muxengine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// executeSpread executes a request where each key may be on any one member.
func (c *call) executeSpread() (reply, error) {
	switch {
	case c.req.conditional():
		return reply{}, unconditionalOnly(c.req.op)
	case c.req.op == opDelete:
		return reply{}, c.deleteEverywhere()
	case c.req.op == opList:
		return c.mergeLists()
	case c.req.op.changesWhatIsThere() && c.node.mode.write == fanOut:
		return c.changeAllCopies()
	case c.req.op.changesWhatIsThere():
		return c.changeWhereItIs()
	}
	rep, err := c.byMode()
	if err == nil && c.req.op == opSet {
		c.removeCopies()
	}
	return rep, err
}

func unconditionalOnly(op operation) error {
	return storage.Errorf(storage.CodeUnsupported, op.String(), "conditional writes need keyspace replicated")
}

// askHolders makes the request of every member that may hold keys. It fails if
// there is none: nobody's answer is not an empty answer.
func (c *call) askHolders() ([]outcome, error) {
	holders := c.node.holders()
	if len(holders) == 0 {
		c.leaving = true
		return nil, c.allDown("no backend is up")
	}
	return c.askAll(holders, &c.req, nil), nil
}

// holders are the members that may hold keys.
func (n *node) holders() []*member {
	var list []*member
	for _, m := range n.members {
		if !m.granted() {
			list = append(list, m)
		}
	}
	return list
}

// deleteEverywhere deletes the key on every member and fails unless all confirm.
func (c *call) deleteEverywhere() error {
	outcomes, err := c.askHolders()
	if err != nil {
		return err
	}
	var failed []outcome
	for _, o := range outcomes {
		if o.err != nil {
			failed = append(failed, o)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return c.refusal(failed)
}

// mergeLists merges the listings of all members; one that is missing could hide
// keys.
func (c *call) mergeLists() (reply, error) {
	outcomes, err := c.askHolders()
	if err != nil {
		return reply{}, err
	}
	pages := make([]storage.ListPage, len(outcomes))
	for i, o := range outcomes {
		if o.err != nil {
			return reply{}, c.refusal(outcomes)
		}
		pages[i] = *o.rep.page
	}
	merged := mergePages(c.req.list.PageLimit(), pages)
	return reply{page: &merged}, nil
}

// changeWhereItIs changes the object on the member that holds it: a change made
// elsewhere would leave two halves.
func (c *call) changeWhereItIs() (reply, error) {
	look := &call{node: c.node, ctx: c.ctx, req: request{op: opStat, key: c.req.key}}
	_, err := look.byMode()
	switch {
	case storage.CodeOf(err) == storage.CodeKeyNotFound:
		return c.byMode()
	case err != nil:
		return reply{}, err
	}
	out := c.askOne(look.winner, &c.req, 0, 1, nil)
	switch {
	case out.err == nil || storage.Classify(out.err) != storage.ClassTransient:
		return out.rep, out.err
	case outcomeOf(out.err) == storage.OutcomeUnknown && c.req.op == opSetPartial:
		return reply{}, c.unknown(out.err)
	}
	c.last = out.err
	return reply{}, c.allDown("the backend that holds the key cannot be written to")
}

// changeAllCopies changes the object on every member that holds it, where writes
// go to all.
func (c *call) changeAllCopies() (reply, error) {
	c.prepare()
	takers := c.everyone()
	look := &call{node: c.node, ctx: c.ctx}
	var holding []*member
	var failed []outcome
	for _, o := range look.askAll(c.node.holders(), &request{op: opStat, key: c.req.key}, nil) {
		switch {
		case storage.CodeOf(o.err) == storage.CodeKeyNotFound:
		case o.err == nil && slices.Contains(takers, o.m):
			holding = append(holding, o.m)
		case o.err == nil:
			failed = append(failed, outcome{m: o.m, skipped: true, err: c.isDown(o.m, c.req.op, 0, 0)})
		default:
			failed = append(failed, o)
		}
	}
	switch {
	case len(holding) == 0 && len(failed) == 0:
		return c.byMode()
	case len(holding) == 0:
		return reply{}, c.refusal(failed)
	case c.node.mode.originDecides && holding[0].index != 0:
		return reply{}, c.allDown("the origin does not hold the key")
	}
	return c.verdictOf(append(c.writeAll(holding), failed...))
}

// cleanUpTime bounds the search for copies that a write has made obsolete. A
// member that holds up a write for so long has failed.
const cleanUpTime = 5 * time.Second

// removeCopies removes, as far as possible, what other members still hold under
// the key that has just been written. A copy that is newer is not touched: it
// belongs to a write that came later, maybe through another proxy and after the
// copy was looked at, so that it goes only if it still is what it was. Stores that
// cannot promise that keep theirs.
func (c *call) removeCopies() {
	n := c.node
	var others []*member
	for _, m := range n.holders() {
		written := m == c.winner || n.mode.write == fanOut && m.drain.Phase == DrainNone
		if !written && m.up() {
			others = append(others, m)
		}
	}
	if len(others) == 0 {
		return
	}
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(c.ctx, cleanUpTime, storage.CauseTimeout)
	defer cancel()
	sub := &call{node: n, ctx: ctx}
	var wg sync.WaitGroup
	for _, o := range sub.askAll(others, &request{op: opStat, key: c.req.key}, nil) {
		copy := &o.rep.info
		if o.err != nil || !c.obsolete(copy, began) || !storage.StrongTag(copy.ETag) {
			continue
		}
		only := storage.GetOptions{Conditions: storage.Conditions{IfMatch: []string{copy.ETag}}}
		wg.Go(func() { sub.askOne(o.m, &request{op: opDelete, key: c.req.key, get: only}, 0, 1, nil) })
	}
	wg.Wait()
}

// obsolete reports whether a copy is older than the write of c, which ended at
// the latest at began.
func (c *call) obsolete(copy *storage.Info, began time.Time) bool {
	if version := copy.Metadata[versionKey]; version != "" {
		return version < c.req.version
	}
	return copy.ModTime.Before(began)
}

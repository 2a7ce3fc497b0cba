package muxengine

import "github.com/suaveplan/storagemux/internal/storage"

// followTries bounds how often one write begins anew on one member because
// somebody else was faster there.
const followTries = 8

// follow brings a conditional write that the arbiter has taken to the other
// members. Each takes it in place of what it holds at the time, and only while the
// arbiter still holds it: so all end with what the arbiter ends with, in whatever
// order the writes of one key come to them.
func (c *call) follow(arbiter outcome, members []*member, pace *pacer) []outcome {
	return c.each(members, func(_ int, m *member, index, count int) outcome {
		return c.followOne(arbiter, m, index, count, pace.begun)
	})
}

func (c *call) followOne(arbiter outcome, m *member, index, count int, begun func(*attempt)) outcome {
	// Looking takes no part in the call: it must not use up its attempts.
	look := &call{node: c.node, ctx: c.ctx}
	for range followTries {
		held := look.askOne(m, &request{op: opStat, key: c.req.key}, index, count, nil)
		absent := storage.CodeOf(held.err) == storage.CodeKeyNotFound
		switch {
		case absent && c.req.op == opDelete:
			return outcome{m: m}
		case held.err != nil && !absent:
			return held
		}
		stands, err := c.stands(arbiter, look)
		if err != nil {
			return outcome{m: m, err: err}
		}
		only := storage.Conditions{IfMatch: []string{held.rep.info.ETag}}
		if absent {
			only = storage.Conditions{IfNoneMatch: []string{"*"}}
		}
		req := c.req.under(only)
		if !stands {
			if req.op != opCompleteUpload {
				return outcome{m: m}
			}
			req.op = opAbortUpload
		}
		out := c.askOne(m, &req, index, count, begun)
		if !decides(out.err) && storage.CodeOf(out.err) != storage.CodeKeyNotFound {
			return out
		}
	}
	e := storage.Errorf(storage.CodeUnavailable, c.req.op.String(), "others wrote the key each of the %d times that it was tried", followTries)
	return outcome{m: m, err: annotate(e, c.req.op, m, c.node.cfg.Mode, index, count)}
}

// stands reports whether the arbiter, which took the write, has not taken another
// since. It asks the very store that took it: beside that there may be others in a
// mux, which missed it.
func (c *call) stands(arbiter outcome, look *call) (bool, error) {
	took := &arbiter.rep.info
	now := look.askOne(arbiter.m, &request{op: opStat, key: c.req.key, pin: took.ServedBy}, 0, 1, nil)
	holds := &now.rep.info
	switch {
	case storage.CodeOf(now.err) == storage.CodeKeyNotFound:
		return c.req.op == opDelete, nil
	case now.err != nil:
		return false, now.err
	case c.req.op == opDelete:
		return false, nil
	case holds.ServedBy != took.ServedBy:
		return false, storage.Errorf(storage.CodeUnavailable, c.req.op.String(), "%q took the write and cannot be asked whether it still holds it", took.ServedBy)
	case c.req.version != "":
		return holds.Metadata[versionKey] == c.req.version, nil
	default:
		return holds.ETag == took.ETag, nil
	}
}

// under returns the write r with these conditions in place of its own.
func (r *request) under(only storage.Conditions) request {
	write := *r
	if r.op == opDelete {
		write.get.Conditions = only
		return write
	}
	set := *r.set
	set.Conditions = only
	write.set = &set
	return write
}

package muxengine

import (
	"errors"
	"sync"

	"github.com/suaveplan/storagemux/internal/storage"
)

// outcome is what became of a request on one member.
type outcome struct {
	m       *member
	rep     reply
	err     error
	attempt *attempt
	// skipped: the member was not asked because it is down.
	skipped bool
}

// askAll makes req, which has no body in its answer, of all members at once and
// waits for every outcome. pace, if not nil, looks after those that take a body.
func (c *call) askAll(members []*member, req *request, pace *pacer) []outcome {
	places := pace.places(len(members))
	return c.each(members, func(i int, m *member, index, count int) outcome {
		defer places[i].taken()
		return c.askOne(m, req, index, count, places[i].begun)
	})
}

// each asks all members at once, as attempts of which each has its index of their
// count, and waits for every outcome.
func (c *call) each(members []*member, ask func(i int, m *member, index, count int) outcome) []outcome {
	outcomes := make([]outcome, len(members))
	first := c.attempts
	c.attempts += len(members)
	count := c.attempts
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() { outcomes[i] = ask(i, m, first+i, count) })
	}
	wg.Wait()
	return outcomes
}

func (c *call) askOne(m *member, req *request, index, count int, begun func(*attempt)) outcome {
	out := outcome{m: m}
	cl, answer := c.admit(m, req.op, c.forced)
	switch answer {
	case admitted:
		a := c.begin(m, cl, req, index, count)
		if begun != nil {
			begun(a)
		}
		out.rep, out.err = a.run()
	case isFull:
		out.err = c.busy()
	case isDraining:
		out.skipped = true
		out.err = annotate(isLeaving(req.op), req.op, m, c.node.cfg.Mode, index, count)
	default:
		out.skipped = true
		out.err = c.isDown(m, req.op, index, count)
	}
	return out
}

// isLeaving is the error of a member that was not asked because it is being
// removed.
func isLeaving(op operation) error {
	return storage.Errorf(storage.CodeBackendDraining, op.String(), "the backend is being removed")
}

// isDown is the error of a member that was not asked.
func (c *call) isDown(m *member, op operation, index, count int) error {
	e := storage.Errorf(storage.CodeAllBackendsDown, op.String(), "the backend is down and was not asked")
	return annotate(e, op, m, c.node.cfg.Mode, index, count)
}

// refusal judges outcomes of which none is a success: an abort and a failed
// precondition decide; if all are semantic the first is the answer; anything
// else is an outage, with every error as its cause, and of unknown effect if any
// of them is.
func (c *call) refusal(outcomes []outcome) error {
	var all []error
	var semantic error
	transient := false
	for _, o := range outcomes {
		if o.err == nil {
			continue
		}
		all = append(all, o.err)
		c.outcome = max(c.outcome, outcomeOf(o.err))
		switch class := storage.Classify(o.err); {
		case class == storage.ClassAbort:
			return o.err
		case decides(o.err):
			return o.err
		case class == storage.ClassSemantic:
			if semantic == nil {
				semantic = o.err
			}
		default:
			transient = true
		}
	}
	if semantic != nil && !transient {
		return semantic
	}
	c.last = errors.Join(all...)
	return c.allDown("no backend could serve the request")
}

// decides reports whether err is an answer that no other member's success may
// turn into its opposite.
func decides(err error) bool {
	return errors.Is(err, storage.ErrPreconditionFailed) || errors.Is(err, storage.ErrNotModified)
}

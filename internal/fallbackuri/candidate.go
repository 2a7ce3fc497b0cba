package fallbackuri

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
)

// candidate is one candidate as the engine's executors see it: a store that
// tells what its outcome means for the others.
type candidate struct {
	ladder           *Ladder
	index            int
	scheme           string
	canonical, shown string

	target Target
	// nested is the ladder of a candidate that is a fallback URI.
	nested *Ladder
	// refused is why there is no target.
	refused error
	timeout time.Duration
}

func newCandidate(l *Ladder, index int, text string, depth int) *candidate {
	c := &candidate{ladder: l, index: index, scheme: uri.SchemeOf(text)}
	c.canonical, c.shown = visit(text)
	if c.scheme == uri.Scheme {
		c.nest(text, depth-1)
	} else {
		c.target, c.refused = l.opts.Resolver.Resolve(text)
	}
	switch {
	case c.nested != nil:
		c.target.Storage, c.timeout = c.nested, c.nested.Timeout()
	case c.target.Timeout > 0:
		c.timeout = c.target.Timeout
	case l.policy.Timeout > 0:
		c.timeout = l.policy.Timeout
	default:
		c.timeout = muxengine.DefaultBackendTimeout
	}
	return c
}

// nest makes the ladder of a candidate that is one, depth levels deep at most.
func (c *candidate) nest(text string, depth int) {
	l := c.ladder
	if depth <= 0 {
		c.refused = l.tooDeep("Resolve", l.policy.MaxDepth)
		return
	}
	u, err := ParseFallbackURI(text, l.policy.MaxCandidates)
	if err == nil {
		c.nested, err = buildLadder(u, l.opts, l.policy, l.bases, depth)
	}
	if err == nil && l.bases {
		for _, below := range c.nested.candidates {
			if below.refused != nil {
				err = below.refused
			}
		}
	}
	c.refused = err
}

// Capabilities implements storage.Storage. A candidate that leads nowhere takes
// nothing away. Tags are no part of what a ladder does.
func (c *candidate) Capabilities() storage.Capabilities {
	caps := storage.AllCapabilities()
	if c.refused == nil {
		caps = c.target.Storage.Capabilities()
	}
	caps.Tagging = false
	return caps
}

// check asks whether the candidate would serve requests.
func (c *candidate) check(ctx context.Context) error {
	if c.refused != nil {
		return c.refused
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, storage.CauseTimeout)
	defer cancel()
	if checker, ok := c.target.Storage.(storage.Checker); ok {
		return checker.Check(ctx)
	}
	return storage.Probe(ctx, c.target.Storage, c.key(storage.ProbeKey))
}

// ask makes one call of the candidate, notes its outcome, and returns it as the
// executors are to take it.
func (c *candidate) ask(ctx context.Context, call func(ctx context.Context) error) error {
	r := recordOf(ctx)
	if chain := r.frame.cycle(c.canonical); chain != nil {
		c.ladder.emit(Event{Topic: TopicCycleDetected, Op: r.op, Candidate: c.shown, Index: c.index})
		r.note(c.index, step{verdict: next, cycle: chain, err: passedOver})
		return passedOver
	}
	err := c.refused
	span := c.ladder.telemetry.startCandidate(ctx, c, r)
	began := time.Now()
	if err == nil {
		err = call(r.frame.push(span.ctx, c.canonical, c.shown))
	}
	v := c.judge(ctx, r, &err)
	span.end(v, err, time.Since(began))
	if lost(ctx, r) {
		// Another one has won; what it cost this one is nobody's concern.
		return err
	}
	r.note(c.index, step{verdict: v, err: err})
	switch v {
	case next:
		if !r.toAll {
			c.ladder.emit(Event{Topic: TopicFellThrough, Op: r.op, Candidate: c.shown, Index: c.index, Err: err})
		}
		return movesOn(r.op, err)
	case abort:
		return c.ladder.aborted(r.op, err)
	}
	return err
}

// judge returns what *err means. An end that the engine has made of the call is
// told by its cause, whatever the store calls it.
func (c *candidate) judge(ctx context.Context, r *record, err *error) verdict {
	switch {
	case *err == nil:
		return done
	case r.ctx.Err() != nil:
		return abort
	case ctx.Err() != nil:
		*err = storage.Errorf(storage.CodeBackendTimeout, r.op, "no sign of life for %s", c.timeout).WithCause(context.Cause(ctx))
		return next
	}
	return c.ladder.policy.judge(*err, r.writes)
}

// lost reports whether the engine has ended the call since another won.
func lost(ctx context.Context, r *record) bool {
	return r.ctx.Err() == nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), storage.CauseTimeout)
}

// passedOver is what the executors see of a candidate that leads back.
var passedOver error = &storage.Error{
	Code: storage.CodeUnavailable, Status: http.StatusServiceUnavailable,
	Message: "the candidate leads back to where the walk came from",
}

// movesOn is what the executors see of an error after which the walk goes on:
// something transient, without the causes that would make it something else.
func movesOn(op string, err error) error {
	e := storage.Errorf(storage.CodeUnavailable, op, "the candidate did not answer")
	e.Status = http.StatusServiceUnavailable
	if unknown(err) {
		e.Outcome = storage.OutcomeUnknown
	}
	return e
}

// relabel names an object as the caller of a ladder of bases knows it.
func (c *candidate) relabel(info *storage.Info, key string) {
	if c.ladder.bases {
		info.Key = key
	}
}

// GetStream implements storage.Storage.
func (c *candidate) GetStream(ctx context.Context, key string, opts storage.GetOptions) (obj *storage.Object, err error) {
	err = c.ask(ctx, func(ctx context.Context) error {
		obj, err = c.target.Storage.GetStream(ctx, c.key(key), opts)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.relabel(&obj.Info, key)
	return obj, nil
}

// Stat implements storage.Storage.
func (c *candidate) Stat(ctx context.Context, key string, opts storage.StatOptions) (info storage.Info, err error) {
	err = c.ask(ctx, func(ctx context.Context) error {
		info, err = c.target.Storage.Stat(ctx, c.key(key), opts)
		return err
	})
	c.relabel(&info, key)
	return info, err
}

// SetStream implements storage.Storage.
func (c *candidate) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (info storage.Info, err error) {
	err = c.ask(ctx, func(ctx context.Context) error {
		opts.CopyOf = nil // the candidate knows that object by another key
		info, err = c.target.Storage.SetStream(ctx, c.key(key), body, opts)
		return err
	})
	c.relabel(&info, key)
	return info, err
}

// SetPartial implements storage.Storage.
func (c *candidate) SetPartial(ctx context.Context, key string, offset int64, body storage.Body) (info storage.Info, err error) {
	err = c.ask(ctx, func(ctx context.Context) error {
		info, err = c.target.Storage.SetPartial(ctx, c.key(key), offset, body)
		return err
	})
	c.relabel(&info, key)
	return info, err
}

// Delete implements storage.Storage.
func (c *candidate) Delete(ctx context.Context, key string) error {
	return c.ask(ctx, func(ctx context.Context) error {
		return c.target.Storage.Delete(ctx, c.key(key))
	})
}

// List implements storage.Storage. In a list that may lack candidates, one that
// fails is as good as empty.
func (c *candidate) List(ctx context.Context, opts storage.ListOptions) (page storage.ListPage, err error) {
	err = c.ask(ctx, func(ctx context.Context) error {
		page, err = c.list(ctx, opts)
		return err
	})
	r := recordOf(ctx)
	if err == nil {
		r.notePage(c.index, page)
		return page, nil
	}
	lacks := c.ladder.policy.ListFailureMode == ListPartial && r.ctx.Err() == nil
	if errors.Is(err, passedOver) || lacks {
		return storage.ListPage{}, nil
	}
	return storage.ListPage{}, err
}

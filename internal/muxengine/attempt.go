package muxengine

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/suaveplan/storagemux/internal/storage"
)

// attempt is one member being asked by one call: its context, its time limit,
// its place among what is in flight. It lasts until end, for a read until its
// body is closed.
type attempt struct {
	call *call
	m    *member
	req  *request
	// index of the attempt within its call, and the count of attempts.
	index, count int
	claim        claim
	span         trace.Span

	ctx    context.Context
	cancel context.CancelCauseFunc
	// apart: ctx is the attempt's own and not the call's.
	apart bool
	timer *time.Timer

	started, firstByte int64

	expired, drained, lost atomic.Bool
	// sentAll: the member has read the body to its end.
	sentAll atomic.Bool
	// copying: the member copies inside itself, and the end of that may be
	// missed.
	copying atomic.Bool
	// slow: the member was dropped from a fan-out.
	slow atomic.Bool
	pace pace
	// late: what the member was to read first is not kept any more.
	late atomic.Bool
	// stalled: the member had to wait for the client so long that it may
	// have lost patience.
	stalled atomic.Bool
	// abandoned: the call is still running and ends the attempt itself.
	abandoned bool
	ended     bool

	// place is that in a fan-out, nil in none.
	place *place

	// prev and next belong to the member's runningList.
	prev, next *attempt
}

// clientStall is how long a client may keep a store waiting before a connection
// that breaks is put down to the client.
const clientStall = 5 * time.Second

// begin starts an attempt on m, which has admitted it.
func (c *call) begin(m *member, cl claim, req *request, index, count int) *attempt {
	return c.beginIn(&attempt{}, m, cl, req, index, count)
}

// beginIn is begin with the attempt's memory, which is zero.
func (c *call) beginIn(a *attempt, m *member, cl claim, req *request, index, count int) *attempt {
	a.call, a.m, a.req, a.index, a.count, a.claim = c, m, req, index, count, cl
	a.started = c.node.mux.now()
	a.ctx, a.cancel = c.ctx, noCancel
	if m.nested == nil || c.shape() != walk {
		// A walk into a mux below needs no context of its own: what may
		// have to be ended there are the attempts on its leaves.
		a.ctx, a.cancel = context.WithCancelCause(c.ctx)
		a.apart = true
	}
	a.startSpan()
	m.state.running.add(a)
	return a
}

func noCancel(error) {}

// run asks the member and judges it by the answer. After an error the attempt
// has ended; after an answer with a body it goes on until the body is closed.
func (a *attempt) run() (reply, error) {
	rep, err := a.ask()
	a.firstByte = a.call.node.mux.now() - a.started
	if err != nil {
		err = a.explain(err)
		if (a.req.op == opSet || a.req.op == opCompleteUpload) && outcomeOf(err) == storage.OutcomeUnknown && a.m.leaf != nil {
			if info, found := a.find(); found {
				rep, err = reply{info: info}, nil
			}
		}
	}
	a.judge(err)
	if err != nil || rep.obj == nil {
		a.end(err)
	}
	rep.info.ServedBy = a.servedBy(rep.info.ServedBy)
	return rep, err
}

func (a *attempt) ask() (reply, error) {
	if a.m.foreign != nil && a.req.upload != nil {
		return a.invoke()
	}
	if below := a.m.below(); below != nil {
		return below.do(a.ctx, a.req.below(a.m), a)
	}
	rep, err := a.try()
	if err != nil && a.retryable(err) {
		return a.m.retry.run(a, err)
	}
	return rep, err
}

// try makes the call once, within the time limit.
func (a *attempt) try() (reply, error) {
	a.arm()
	rep, err := a.invoke()
	if !a.timer.Stop() && err == nil && rep.obj != nil {
		// The limit struck just now, and has ended the body's context.
		a.expired.Store(true)
		err = errors.Join(storage.CauseTimeout, rep.obj.Body.Close())
		rep = reply{}
	}
	return rep, err
}

func (a *attempt) invoke() (reply, error) {
	var body storage.Body
	if a.req.op.carriesBody() {
		a.sentAll.Store(false)
		if a.req.body.Size() == 0 {
			// The member may never read what is not there.
			a.takes(0, 0, true)
		}
		body = &sentBody{Body: a.req.body, attempt: a}
	}
	if a.m.cfg.MayBlock {
		rep, err := a.invokeApart(body)
		if rep.obj != nil {
			rep.obj.Body = newApartBody(a, rep.obj.Body)
		}
		return rep, err
	}
	return a.send(body)
}

// send makes the request of the leaf.
func (a *attempt) send(body storage.Body) (reply, error) {
	if rep, done, err := a.copyInside(); done {
		return rep, err
	}
	if a.req.upload != nil {
		return a.callUpload(a.ctx, body)
	}
	return a.req.call(a.ctx, a.m.leaf, body)
}

// invokeApart makes the call on a goroutine of its own and leaves it alone when
// the context ends. The call stays in flight until it returns.
func (a *attempt) invokeApart(body storage.Body) (reply, error) {
	type answer struct {
		rep reply
		err error
	}
	var taken atomic.Bool
	done := make(chan answer, 1)
	go func() {
		rep, err := a.send(body)
		if taken.CompareAndSwap(false, true) {
			done <- answer{rep, err}
			return
		}
		if rep.obj != nil {
			_ = rep.obj.Body.Close()
		}
		a.m.state.release()
	}()
	select {
	case got := <-done:
		return got.rep, got.err
	case <-a.ctx.Done():
		if taken.CompareAndSwap(false, true) {
			a.abandoned = true
			return reply{}, a.ctx.Err()
		}
		got := <-done
		return got.rep, got.err
	}
}

// arm starts the time limit of a try, or starts it anew.
func (a *attempt) arm() {
	if a.timer == nil {
		a.timer = time.AfterFunc(a.m.timeout, a.expire)
	} else {
		a.timer.Reset(a.m.timeout)
	}
}

// pause stops the time limit, and moved starts it anew: the member waits for
// somebody else, or has got on. A mux that is nested has no time limit.
func (a *attempt) pause() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

func (a *attempt) moved() {
	if a.timer != nil && a.ctx.Err() == nil {
		a.timer.Reset(a.m.timeout)
	}
}

func (a *attempt) expire() {
	a.expired.Store(true)
	a.cancel(storage.CauseTimeout)
}

// dropSlow ends the attempt of a member that holds up a fan-out.
func (a *attempt) dropSlow() {
	a.slow.Store(true)
	a.cancel(storage.CauseTimeout)
}

// tooSlow reports whether the member, or a mux around it, was dropped.
func (a *attempt) tooSlow() bool {
	for ; a != nil; a = a.call.parent {
		if a.slow.Load() {
			return true
		}
	}
	return false
}

// heldUpOthers reports whether err is that of a member which, in a fan-out, took a
// body and then did not answer: what it took may be in the buffers of a network that
// is slow.
func (a *attempt) heldUpOthers(err error) bool {
	if !a.req.op.carriesBody() || !errors.Is(err, storage.ErrBackendTimeout) {
		return false
	}
	for ; a != nil; a = a.call.parent {
		if a.call.shape() == fanOut {
			return true
		}
	}
	return false
}

// drain and lose end the attempt from outside.
func (a *attempt) drain() {
	if !a.apart {
		return
	}
	a.drained.Store(true)
	a.cancel(storage.CauseDrain)
}

func (a *attempt) lose() {
	a.lost.Store(true)
	a.cancel(storage.CauseLostRace)
}

// explain turns what the member returned into what happened: an end that was
// made from outside is told by who made it.
func (a *attempt) explain(err error) error {
	op := a.req.op
	var e *storage.Error
	switch {
	case a.tooSlow():
		e = storage.Errorf(storage.CodeBackendTimeout, op.String(), "the backend took the body at less than %d bytes a second", slowRate).WithCause(storage.CauseTimeout)
	case errors.Is(context.Cause(a.call.ctx), storage.CauseTimeout):
		e = storage.Errorf(storage.CodeBackendTimeout, op.String(), "no answer for %s", cleanUpTime).WithCause(storage.CauseTimeout)
	case a.call.ctx.Err() != nil:
		e = storage.Errorf(storage.CodeBackendAborted, op.String(), "the caller left").WithCause(context.Cause(a.call.ctx))
	case a.late.Load():
		e = storage.Errorf(storage.CodeUnavailable, op.String(), "the body was too large to be kept until the backend's turn")
		e.Status, e.Neutral = http.StatusServiceUnavailable, true
	case a.bodyFailed() != nil:
		e = bodyError(op, a.bodyFailed())
	case a.expired.Load():
		e = storage.Errorf(storage.CodeBackendTimeout, op.String(), "no sign of life for %s", a.m.timeout).WithCause(storage.CauseTimeout)
		if op.changes() && a.sent() {
			e.Outcome = storage.OutcomeUnknown
		}
	case a.drained.Load():
		e = storage.Errorf(storage.CodeBackendDraining, op.String(), "the backend is being removed").WithCause(storage.CauseDrain)
		if op.changes() && a.sent() {
			e.Outcome = storage.OutcomeUnknown
		}
	case a.lost.Load():
		e = storage.Errorf(storage.CodeBackendAborted, op.String(), "another backend was first").WithCause(storage.CauseLostRace)
	default:
		e = annotate(err, op, a.m, a.call.node.cfg.Mode, a.index, a.count)
		if a.ambiguous(err) {
			e.Outcome = storage.OutcomeUnknown
		}
		return e
	}
	return annotate(e, op, a.m, a.call.node.cfg.Mode, a.index, a.count)
}

// ambiguous reports whether a write that failed with err may have taken effect:
// the store says so, or the body was sent and no answer came.
func (a *attempt) ambiguous(err error) bool {
	var e *storage.Error
	if errors.As(err, &e) {
		return e.Outcome == storage.OutcomeUnknown
	}
	return a.req.op.changes() && a.sent()
}

// sent reports whether the member has got all that the request brings.
func (a *attempt) sent() bool {
	return a.sentAll.Load() || a.copying.Load() || a.req.op == opCompleteUpload
}

// bodyFailed returns the error that the body of the request ended with, if it
// was not the member that failed.
func (a *attempt) bodyFailed() error {
	if c, ok := a.req.body.(*content); ok {
		return c.failure()
	}
	return nil
}

// judge tells the member's health what to make of err. The right to judge is
// renewed, since the body of an answer may still fail.
func (a *attempt) judge(err error) {
	st := a.m.state
	if a.m.leaf == nil || a.m.health.Stateless || a.clientsFault(err) {
		st.forget(a.claim)
		return
	}
	if a.tooSlow() || a.heldUpOthers(err) {
		// Being alive is not enough to be given bytes again.
		st.failed(&st.space, a.claim.space, err)
	}
	st.judge(a.claim, err)
	a.claim = claim{health: st.health.begin(), space: st.space.begin()}
}

// clientsFault reports whether the connection may have broken because the client
// kept the member waiting. A member that is itself waited for has no such excuse.
func (a *attempt) clientsFault(err error) bool {
	return a.stalled.Load() && storage.Classify(err) == storage.ClassTransient && !errors.Is(err, storage.ErrBackendTimeout)
}

// end takes the attempt out of what is in flight and counts its outcome.
func (a *attempt) end(err error) {
	a.ended = true
	if a.timer != nil {
		a.timer.Stop()
	}
	a.cancel(context.Canceled)
	st := a.m.state
	st.running.remove(a)
	st.count(err, time.Duration(a.firstByte), a.call.node.mux.rand())
	a.endSpan(err)
	if !a.abandoned {
		st.release()
	}
}

// servedBy returns the path of the member that gave an answer in which a mux
// below has written its own part.
func (a *attempt) servedBy(below string) string {
	switch {
	case below == "" || a.m.leaf != nil:
		return a.m.path
	case a.m.foreign != nil:
		return join(a.m.path, below)
	default:
		return below
	}
}

// sentBody is the body of a write as one attempt hands it to its member. The
// time limit rests while the member waits for the body, and starts anew with
// every piece: after the last one it is the time to the first byte.
type sentBody struct {
	storage.Body
	attempt *attempt
}

func (b *sentBody) Open() (io.ReadCloser, error) {
	// Behind the content there may be a store as well, which is slow to answer.
	a, asked := b.attempt, b.attempt.call.node.mux.now()
	a.pause()
	a.asks(asked)
	r, err := b.Body.Open()
	a.takes(0, a.call.node.mux.now()-asked, false)
	a.moved()
	if err != nil {
		return nil, err
	}
	for at := a; at != nil; at = at.call.parent {
		at.place.taken()
	}
	sent := &sentReader{ReadCloser: r, attempt: a, left: b.Size()}
	if shared, ok := r.(*contentReader); ok {
		// The others must not wait for a member that has been given up, though
		// it may still hold the body.
		sent.forget = context.AfterFunc(a.ctx, func() { _ = shared.Close() })
	}
	return sent, nil
}

type sentReader struct {
	io.ReadCloser
	attempt *attempt
	left    int64
	begun   bool
	// forget takes back that the end of the attempt closes the body.
	forget func() bool
}

// Close implements io.Closer.
func (r *sentReader) Close() error {
	if r.forget != nil {
		r.forget()
	}
	return r.ReadCloser.Close()
}

func (r *sentReader) Read(p []byte) (int, error) {
	a := r.attempt
	a.pause()
	asked := a.call.node.mux.now()
	a.asks(asked)
	n, err := r.ReadCloser.Read(p)
	waited := a.call.node.mux.now() - asked
	r.left -= int64(n)
	a.takes(int64(n), waited, errors.Is(err, io.EOF) || r.left == 0)
	if waited >= int64(clientStall) {
		a.stalled.Store(true)
	}
	if errors.Is(err, errContentGone) {
		if r.begun {
			a.slow.Store(true)
		} else {
			a.late.Store(true)
		}
	}
	r.begun = r.begun || n > 0
	a.moved()
	return n, err
}

package muxengine

import (
	"errors"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/suaveplan/storagemux/internal/storage"
)

// retrier runs a leaf's call again in place. The library owns pauses and counts;
// what may be tried again is decided here.
type retrier struct {
	executor    failsafe.Executor[reply]
	maxInterval time.Duration
}

// newRetrier returns nil if cfg asks for no retry.
func newRetrier(cfg Retry) *retrier {
	if cfg.MaxAttempts < 2 {
		return nil
	}
	policy := retrypolicy.NewBuilder[reply]().
		WithMaxAttempts(cfg.MaxAttempts).
		HandleIf(func(_ reply, err error) bool { return err != nil }).
		AbortIf(func(_ reply, err error) bool {
			var final *finalError
			return errors.As(err, &final)
		}).
		ReturnLastFailure()
	maxInterval := max(cfg.MaxInterval, cfg.InitialInterval)
	if cfg.InitialInterval > 0 {
		policy = policy.WithJitterFactor(0.2)
		if maxInterval > cfg.InitialInterval {
			policy = policy.WithBackoff(cfg.InitialInterval, maxInterval)
		} else {
			policy = policy.WithDelay(cfg.InitialInterval)
		}
	}
	return &retrier{executor: failsafe.With[reply](policy.Build()), maxInterval: maxInterval}
}

// run takes over from the failure of a first try, which counts as the first
// attempt of the strategy.
func (r *retrier) run(a *attempt, first error) (reply, error) {
	failed := first
	rep, err := r.executor.WithContext(a.ctx).Get(func() (rep reply, err error) {
		if failed != nil {
			err, failed = failed, nil
			return reply{}, err
		}
		if rep, err = a.try(); err != nil && !a.retryable(err) {
			err = &finalError{err}
		}
		return rep, err
	})
	var final *finalError
	if errors.As(err, &final) {
		err = final.error
	}
	return rep, err
}

// finalError is an error after which there is no further try.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// retryable reports whether err, the outcome of a try, allows another on the
// same member.
func (a *attempt) retryable(err error) bool {
	if a.m.retry == nil || a.ctx.Err() != nil || a.bodyFailed() != nil {
		return false
	}
	e := annotate(err, a.req.op, a.m, "", 0, 0)
	switch {
	case storage.Classify(e) != storage.ClassTransient,
		e.Code == storage.CodeBackendTimeout, e.Code == storage.CodeNoSpace,
		e.RetryAfter > a.m.retry.maxInterval:
		return false
	case a.req.op.writes() && a.ambiguous(err):
		return false
	case a.req.op.carriesBody():
		return a.req.body.Replayable()
	}
	return true
}

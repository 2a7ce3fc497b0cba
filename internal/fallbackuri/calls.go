package fallbackuri

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// GetStream implements storage.Storage. A body that breaks is resumed on another
// candidate that holds the same object.
func (l *Ladder) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	r, err := l.begin(ctx, "GetStream", key, false)
	if err != nil {
		return nil, err
	}
	obj, err := l.reads.GetStream(r.ctx, key, opts)
	if err = r.finish(r.read(err)); err != nil {
		return nil, err
	}
	obj.ServedBy = l.served(obj.ServedBy)
	return obj, nil
}

// Stat implements storage.Storage.
func (l *Ladder) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	r, err := l.begin(ctx, "Stat", key, false)
	if err != nil {
		return storage.Info{}, err
	}
	info, err := l.reads.Stat(r.ctx, key, opts)
	err = r.read(err)
	if key == storage.ProbeKey && storage.CodeOf(err) == storage.CodeFallbackAllCandidatesFailed && anyAnswered(r.tried(r.settled())) {
		// Whoever asks for the probe wants to know who is alive.
		err = storage.Errorf(storage.CodeKeyNotFound, r.op, "no candidate holds the probe")
	}
	info.ServedBy = l.served(info.ServedBy)
	return info, r.finish(err)
}

// SetStream implements storage.Storage. A write to all with a precondition is
// decided by the first candidate; the others follow without it.
func (l *Ladder) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	if err := storage.RefuseTags("SetStream", opts.Tags); err != nil {
		return storage.Info{}, err
	}
	return l.write(ctx, "SetStream", key, func(ctx context.Context) (storage.Info, error) {
		return l.writes.SetStream(ctx, key, body, opts)
	})
}

// SetPartial implements storage.Storage.
func (l *Ladder) SetPartial(ctx context.Context, key string, offset int64, body storage.Body) (storage.Info, error) {
	return l.write(ctx, "SetPartial", key, func(ctx context.Context) (storage.Info, error) {
		return l.writes.SetPartial(ctx, key, offset, body)
	})
}

func (l *Ladder) write(ctx context.Context, op, key string, call func(context.Context) (storage.Info, error)) (storage.Info, error) {
	r, err := l.begin(ctx, op, key, true)
	if err != nil {
		return storage.Info{}, err
	}
	r.toAll = l.policy.WriteMode == WriteAll
	info, err := call(r.ctx)
	if !r.toAll {
		err = r.read(err)
	} else {
		err = r.mirrored(err)
	}
	info.ServedBy = l.served(info.ServedBy)
	return info, r.finish(err)
}

// Delete implements storage.Storage. It goes to every candidate.
func (l *Ladder) Delete(ctx context.Context, key string) error {
	r, err := l.begin(ctx, "Delete", key, true)
	if err != nil {
		return err
	}
	r.toAll = true
	return r.finish(r.deleted(l.deletes.Delete(r.ctx, key)))
}

// served returns the candidate behind a path of the engine's.
func (l *Ladder) served(path string) string {
	first, _, _ := strings.Cut(path, "/")
	if i, err := strconv.Atoi(first); err == nil && i >= 0 && i < len(l.candidates) {
		return l.candidates[i].shown
	}
	return ""
}

// finish ends the call's span.
func (r *record) finish(err error) error {
	r.ladder.telemetry.endCall(r, err)
	return err
}

// read is the outcome of a walk or race for which the engine has err.
func (r *record) read(err error) error {
	switch {
	case err == nil:
		return nil
	case r.ctx.Err() != nil:
		return r.ladder.aborted(r.op, context.Cause(r.ctx))
	case storage.CodeOf(err) != storage.CodeAllBackendsDown:
		return r.own(err)
	}
	steps := r.settled()
	tried := r.tried(steps)
	switch chain := circle(steps); {
	case chain != nil:
		return r.ladder.circular(r.op, chain)
	case r.ladder.bases && allMissing(tried):
		return storage.Errorf(storage.CodeKeyNotFound, r.op, "no candidate holds the key")
	case r.unanimous(tried):
		return tried[0].Err
	}
	return r.ladder.allFailed(r.op, tried)
}

// own returns what a candidate said where err is the engine's account of that,
// else err: the body was at fault, or could not be kept.
func (r *record) own(err error) error {
	v, said := ended(r.settled())
	switch {
	case said == nil:
		return err
	case v == abort:
		return r.ladder.aborted(r.op, said)
	case storage.CodeOf(said) == storage.CodeOf(err):
		return said
	}
	return err
}

// allMissing reports whether every candidate has said that it holds nothing, also
// those below one that is a fallback URI itself.
func allMissing(tried []CandidateError) bool {
	for _, t := range tried {
		var below *Failure
		switch code := storage.CodeOf(t.Err); {
		case code == storage.CodeKeyNotFound:
		case code == storage.CodeFallbackAllCandidatesFailed && errors.As(t.Err, &below) && allMissing(below.CandidateErrors):
		default:
			return false
		}
	}
	return len(tried) > 0
}

// mirrored is the outcome of a write to all.
func (r *record) mirrored(err error) error {
	steps := r.settled()
	tried := r.tried(steps)
	_, said := ended(steps)
	switch code := storage.CodeOf(err); {
	case err != nil && r.ctx.Err() != nil:
		return r.ladder.aborted(r.op, context.Cause(r.ctx))
	case err == nil && len(tried) == 0:
		return nil
	case code == storage.CodeInvalidBody:
		return err
	case code == storage.CodePreconditionFailed, code == storage.CodeKeyNotFound && len(tried) == 1:
		// The candidate that decides has.
		if said != nil {
			return said
		}
		return err
	}
	switch chain := circle(steps); {
	case chain != nil:
		return r.ladder.circular(r.op, chain)
	case err != nil && r.unanimous(tried):
		return tried[0].Err
	}
	r.missed(tried)
	return r.ladder.mirrorFailed(r.op, r.outcomes(steps))
}

// deleted is the outcome of a delete.
func (r *record) deleted(err error) error {
	if err != nil && r.ctx.Err() != nil {
		return r.ladder.aborted(r.op, context.Cause(r.ctx))
	}
	steps := r.settled()
	if chain := circle(steps); chain != nil {
		return r.ladder.circular(r.op, chain)
	}
	tried := r.tried(steps)
	switch {
	case len(tried) == 0:
		return nil
	case err != nil && r.unanimous(tried):
		return tried[0].Err
	}
	r.missed(tried)
	if err == nil && r.ladder.policy.DeleteMode == DeleteAny {
		return nil
	}
	return r.ladder.mirrorFailed(r.op, r.outcomes(steps))
}

// unanimous reports whether a store would give the one answer that all its parts
// give. Where a candidate is an object, the eight codes of fallback URIs hold.
func (r *record) unanimous(tried []CandidateError) bool {
	if !r.ladder.bases || len(tried) == 0 {
		return false
	}
	for _, t := range tried {
		if storage.Classify(t.Err) != storage.ClassSemantic || storage.CodeOf(t.Err) != storage.CodeOf(tried[0].Err) {
			return false
		}
	}
	return true
}

func (r *record) missed(tried []CandidateError) {
	r.ladder.emit(Event{Topic: TopicWritePartial, Op: r.op, Failed: tried})
}

// outcomes are what became of a write, a candidate each.
func (r *record) outcomes(steps []step) []MirrorOutcome {
	list := make([]MirrorOutcome, len(steps))
	for i, s := range steps {
		o := MirrorOutcome{URI: r.ladder.candidates[i].shown, Status: MirrorFulfilled}
		switch {
		case !s.asked || s.cycle != nil:
			o.Status = MirrorSkipped
		case s.err != nil:
			o.Status, o.Err = MirrorRejected, s.err
		}
		list[i] = o
	}
	return list
}

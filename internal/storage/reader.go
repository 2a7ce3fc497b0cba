package storage

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// Reader reads an opened Body for a store. It yields exactly the promised
// number of bytes, and hands out the last of them only once the body has ended
// as promised and fits its checksums. A store that commits when it has the
// last byte therefore never commits a content that is cut, too long or wrong.
type Reader struct {
	ctx      context.Context
	op       string
	source   io.ReadCloser
	size     int64
	verifier *Verifier
	read     int64
	whole    atomic.Bool
	err      error
	stop     func() bool
	close    sync.Once
	left     atomic.Bool // the store closed r
}

// OpenBody opens b for operation op. When ctx ends, what b's Open returned is
// closed, also while it is being read, so that a blocked Read returns. Checksums
// in sums are verified.
func OpenBody(ctx context.Context, op string, b Body, sums Checksums) (*Reader, error) {
	source, err := b.Open()
	if err != nil {
		return nil, bodyError(ctx, op, err)
	}
	r := &Reader{ctx: ctx, op: op, source: source, size: b.Size(), verifier: NewVerifier(sums)}
	r.stop = context.AfterFunc(ctx, r.closeSource)
	return r, nil
}

// Read implements io.Reader. Its errors are Errors: INVALID_BODY where the
// body is at fault, the body's own where it gave one, and Interrupted's.
func (r *Reader) Read(p []byte) (int, error) {
	switch {
	case r.err != nil:
		return 0, r.err
	case r.whole.Load():
		return 0, io.EOF
	case len(p) == 0:
		return 0, nil
	case r.ctx.Err() != nil:
		return 0, r.fail(Interrupted(r.ctx, r.op, "reading the body"))
	}
	if r.size >= 0 && int64(len(p)) > r.size-r.read {
		p = p[:max(r.size-r.read, 1)]
	}
	n, err := r.source.Read(p)
	r.read += int64(n)
	r.verifier.Write(p[:n])
	if r.size >= 0 && r.read > r.size {
		return 0, r.fail(Errorf(CodeInvalidBody, r.op, "the body is longer than the %d bytes it promised", r.size))
	}
	if err == nil && r.read == r.size {
		err = r.probeEnd()
	}
	switch {
	case err == nil:
		return n, nil
	case err != io.EOF:
		return 0, r.fail(bodyError(r.ctx, r.op, err))
	case r.size >= 0 && r.read < r.size:
		return 0, r.fail(Errorf(CodeInvalidBody, r.op, "the body ended after %d of %d bytes", r.read, r.size))
	}
	if err := r.verifier.Verify(); err != nil {
		return 0, r.fail(err)
	}
	r.whole.Store(true)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// probeEnd reads on where the body should end and returns io.EOF if it does.
func (r *Reader) probeEnd() error {
	var one [1]byte
	for range 100 {
		n, err := r.source.Read(one[:])
		if n > 0 {
			return Errorf(CodeInvalidBody, r.op, "the body is longer than the %d bytes it promised", r.size)
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// fail keeps err, unless it comes of the store's own closing.
func (r *Reader) fail(err error) error {
	if !r.left.Load() {
		r.err = err
	}
	return err
}

// Err returns the error with which reading failed, nil before and after the
// end. A store whose write fails asks it first: the body's fault is not the store's.
func (r *Reader) Err() error { return r.err }

// Whole reports whether the last byte was handed out. It may be asked while
// another goroutine reads.
func (r *Reader) Whole() bool { return r.whole.Load() }

// BytesRead returns how many bytes were read so far.
func (r *Reader) BytesRead() int64 { return r.read }

// Close closes what Open of the body returned. A store may call it while
// another goroutine reads; that Read then fails, which is not the body's fault.
func (r *Reader) Close() error {
	r.left.Store(true)
	r.stop()
	r.closeSource()
	return nil
}

func (r *Reader) closeSource() { r.close.Do(func() { _ = r.source.Close() }) }

// bodyError returns err as the error of a write whose body could not be read,
// so that the store is not blamed for it.
func bodyError(ctx context.Context, op string, err error) error {
	if ctx.Err() != nil {
		return Interrupted(ctx, op, "reading the body")
	}
	if CodeOf(err) != "" || Classify(err) == ClassAbort {
		return err
	}
	return Errorf(CodeInvalidBody, op, "reading the body").WithCause(err)
}

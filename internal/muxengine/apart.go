package muxengine

import "io"

// apartPiece is the most that one Read of an apartBody gives.
const apartPiece = 64 << 10

// apartBody is the body of a leaf that may ignore the end of its context. Each
// Read is made on a goroutine of its own, into a buffer of its own, and is left
// alone when the attempt's context ends; the attempt then stays in flight until
// that Read returns.
type apartBody struct {
	attempt *attempt
	body    io.ReadCloser
	buffer  []byte
	done    chan apartRead
	// left: a Read still runs, and body and buffer are its.
	left bool
}

type apartRead struct {
	n   int
	err error
}

func newApartBody(a *attempt, body io.ReadCloser) *apartBody {
	return &apartBody{attempt: a, body: body, done: make(chan apartRead, 1)}
}

// Read implements io.Reader.
func (b *apartBody) Read(p []byte) (int, error) {
	ctx := b.attempt.ctx
	if b.left {
		return 0, ctx.Err()
	}
	n := min(len(p), apartPiece)
	if len(b.buffer) < n {
		b.buffer = make([]byte, n)
	}
	go func() {
		read, err := b.body.Read(b.buffer[:n])
		b.done <- apartRead{read, err}
	}()
	select {
	case got := <-b.done:
		return copy(p, b.buffer[:got.n]), got.err
	case <-ctx.Done():
		b.left = true
		return 0, ctx.Err()
	}
}

// Close implements io.Closer. After a Read that was left alone the body is closed
// once that returns.
func (b *apartBody) Close() error {
	if !b.left {
		return b.body.Close()
	}
	b.attempt.abandoned = true
	go func() {
		<-b.done
		_ = b.body.Close()
		b.attempt.m.state.release()
	}()
	return nil
}

package storage

import (
	"bytes"
	"io"
	"sync/atomic"
)

// Body is the content of a write. A store opens it once per attempt, reads it
// to its end and closes what it opened. A reader that returns an error other
// than io.EOF means that the content is not to be stored.
type Body interface {
	// Open returns a reader over the content from its first byte. A body
	// that cannot be read again returns ErrConsumed from the second call on.
	// Where a Read can block, Close must make it return: a store closes what
	// it opened when its context ends, also during a Read.
	Open() (io.ReadCloser, error)
	// Size is the length of the content in bytes, or -1 if it is unknown.
	Size() int64
	// Replayable reports whether Open may be called again.
	Replayable() bool
}

// ErrConsumed is what Open of a body returns that cannot be read once more.
var ErrConsumed = &Error{Code: CodeUnavailable, Op: "Open", Message: "the body was read before and was not kept"}

// Bytes returns a replayable body over b, which must not change.
func Bytes(b []byte) Body { return bytesBody(b) }

type bytesBody []byte

func (b bytesBody) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
func (b bytesBody) Size() int64                  { return int64(len(b)) }
func (b bytesBody) Replayable() bool             { return true }

// Stream returns a body over r that can be read once. Size is r's length, or
// -1 if that is unknown. Closing what Open returns does not close r.
func Stream(r io.Reader, size int64) Body { return &streamBody{r: r, size: size} }

type streamBody struct {
	r      io.Reader
	size   int64
	opened atomic.Bool
}

func (b *streamBody) Open() (io.ReadCloser, error) {
	if b.opened.Swap(true) {
		return nil, ErrConsumed
	}
	return io.NopCloser(b.r), nil
}
func (b *streamBody) Size() int64      { return b.size }
func (b *streamBody) Replayable() bool { return false }

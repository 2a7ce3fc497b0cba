package memory

import (
	"context"
	"io"

	"github.com/suaveplan/storagemux/internal/storage"
)

// body reads a part of an immutable object.
type body struct {
	ctx  context.Context
	rest []byte
	shut bool
}

var _ io.WriterTo = (*body)(nil)

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if err := b.usable(); err != nil {
		return 0, err
	}
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// WriteTo implements io.WriterTo in pieces, so that a cancellation is noticed.
func (b *body) WriteTo(w io.Writer) (written int64, err error) {
	for len(b.rest) > 0 {
		if err := b.usable(); err != nil {
			return written, err
		}
		n, err := w.Write(b.rest[:min(len(b.rest), 256<<10)])
		b.rest = b.rest[n:]
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, b.usable()
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.shut = true
	return nil
}

func (b *body) usable() error {
	switch {
	case b.shut:
		return storage.Errorf(storage.CodeUnavailable, "GetStream", "the body is closed")
	case b.ctx.Err() != nil:
		return storage.Interrupted(b.ctx, "GetStream", "reading the object")
	}
	return nil
}

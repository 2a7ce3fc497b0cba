package storage

import (
	"context"
	"io"
)

type progressKey struct{}

// WithProgress returns a context with which a store that is busy for long calls
// moved whenever it has got on, so that whoever waits can tell work from a
// standstill. It is for operations without a body of their own, such as
// CompleteUpload of a store that copies the parts together.
func WithProgress(ctx context.Context, moved func()) context.Context {
	return context.WithValue(ctx, progressKey{}, moved)
}

// Progress returns what a store calls when it has got on. It is never nil, and
// must not be called after the operation has returned.
func Progress(ctx context.Context) func() {
	if moved, ok := ctx.Value(progressKey{}).(func()); ok {
		return moved
	}
	return func() {}
}

// ProgressReader returns r, each of whose bytes is progress.
func ProgressReader(ctx context.Context, r io.Reader) io.Reader {
	return progressReader{r, Progress(ctx)}
}

type progressReader struct {
	io.Reader
	moved func()
}

func (r progressReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if n > 0 {
		r.moved()
	}
	return n, err
}

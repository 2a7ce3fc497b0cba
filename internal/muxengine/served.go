package muxengine

import (
	"context"
	"sync/atomic"
)

// Served tells which member answered a request.
type Served struct{ path atomic.Pointer[string] }

// Path returns the path of names from the outermost mux to the leaf that
// served, e.g. "mirrors/eu", or "" as long as none did.
func (s *Served) Path() string {
	if p := s.path.Load(); p != nil {
		return *p
	}
	return ""
}

type servedKey struct{}

// WithServed returns a context whose request fills s.
func WithServed(ctx context.Context, s *Served) context.Context {
	return context.WithValue(ctx, servedKey{}, s)
}

func noteServed(ctx context.Context, path *string) {
	if s, ok := ctx.Value(servedKey{}).(*Served); ok {
		s.path.Store(path)
	}
}

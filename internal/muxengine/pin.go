package muxengine

import (
	"context"
	"strings"
)

// ListPin keeps the pages of one listing with one member, as long as that is up.
// In keyspace spread, where every page comes from all members, it stays empty.
type ListPin struct {
	// Member is the path of the leaf that gave the page. Set before the
	// call, that leaf is asked first.
	Member string
}

type listPinKey struct{}

// WithListPin returns a context with which List of a mux heeds and fills pin.
func WithListPin(ctx context.Context, pin *ListPin) context.Context {
	return context.WithValue(ctx, listPinKey{}, pin)
}

func listPinOf(ctx context.Context) *ListPin {
	pin, _ := ctx.Value(listPinKey{}).(*ListPin)
	return pin
}

// pinned returns the member of the mux that the request's pin leads to, if it
// may be chosen.
func (c *call) pinned() *member {
	if c.req.pin == "" {
		return nil
	}
	for _, i := range c.node.reads.index {
		if m := c.node.members[i]; m.path == c.req.pin || strings.HasPrefix(c.req.pin, m.path+"/") {
			return m
		}
	}
	return nil
}

// below returns r as the mux m sees it, whose paths may begin elsewhere.
func (r *request) below(m *member) *request {
	if r.pin == "" || m.foreign == nil {
		return r
	}
	inner := *r
	inner.pin = strings.TrimPrefix(r.pin, m.path+"/")
	return &inner
}

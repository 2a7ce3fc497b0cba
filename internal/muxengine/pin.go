package muxengine

import "strings"

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

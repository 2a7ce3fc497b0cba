package muxengine

import (
	"context"

	"github.com/suaveplan/storagemux/internal/storage"
)

var _ storage.Tagger = (*Mux)(nil)

// GetTags implements storage.Tagger.
func (m *Mux) GetTags(ctx context.Context, key string) (map[string]string, error) {
	n := m.node.Load()
	if err := n.takesTags("GetTags"); err != nil {
		return nil, err
	}
	rep, err := n.do(ctx, &request{op: opGetTags, key: key}, nil)
	return rep.tags, err
}

// SetTags implements storage.Tagger. In keyspace spread the tags change where the
// object is.
func (m *Mux) SetTags(ctx context.Context, key string, tags map[string]string) error {
	n := m.node.Load()
	if err := n.takesTags("SetTags"); err != nil {
		return err
	}
	_, err := n.do(ctx, &request{op: opSetTags, key: key, tags: tags}, nil)
	return err
}

// takesTags returns why tags cannot be kept, if so: every member must keep them,
// or they would be lost from one member to the next.
func (n *node) takesTags(op string) error {
	if n.caps.Tagging {
		return nil
	}
	e := storage.Errorf(storage.CodeUnsupported, op, "not every backend keeps tags")
	e.Mode = string(n.cfg.Mode)
	return e
}

// refuseTags refuses a write with tags that cannot be kept.
func (n *node) refuseTags(op operation, opts *storage.SetOptions) error {
	if len(opts.Tags) == 0 {
		return nil
	}
	return n.takesTags(op.String())
}

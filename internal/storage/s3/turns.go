package s3

import (
	"context"
	"hash/maphash"

	"github.com/suaveplan/storagemux/internal/storage"
)

// turns let one partial write per key be under way here at a time. Keys share
// them, which costs time and nothing else.
type turns struct {
	seed maphash.Seed
	held *[64]chan struct{}
}

func newTurns() turns {
	t := turns{seed: maphash.MakeSeed(), held: new([64]chan struct{})}
	for i := range t.held {
		t.held[i] = make(chan struct{}, 1)
	}
	return t
}

// wait returns when it is the turn of a write of key, with what ends it.
func (t turns) wait(ctx context.Context, op, key string) (done func(), err error) {
	turn := t.held[maphash.String(t.seed, key)%uint64(len(t.held))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, storage.Interrupted(ctx, op, "waiting for another partial write")
	}
}

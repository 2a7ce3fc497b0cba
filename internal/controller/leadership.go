package controller

import (
	"context"
	"fmt"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/internal/render"
)

// leadership knows under which transition count of the lease this process
// became leader. Documents carry it, so that a leader that was deposed without
// noticing cannot replace what its successor wrote.
type leadership struct {
	// live reads the lease; nil without leader election.
	live  client.Reader
	lease types.NamespacedName

	mu    sync.Mutex
	known bool
	count int64
}

// transitions returns the count for a document that is to replace one with the
// count stored. A stored one above the lease's own is from before the lease was
// deleted, and is kept, as long as the lease is still the one of this process.
func (l *leadership) transitions(ctx context.Context, stored int64) (int64, error) {
	if l.live == nil {
		return stored, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known {
		count, err := l.read(ctx)
		if err != nil {
			return 0, err
		}
		l.known, l.count = true, count
	}
	if stored <= l.count {
		return l.count, nil
	}
	count, err := l.read(ctx)
	switch {
	case err != nil:
		return 0, err
	case count != l.count:
		return 0, render.ErrDeposed
	default:
		return stored, nil
	}
}

func (l *leadership) read(ctx context.Context) (int64, error) {
	lease := &coordinationv1.Lease{}
	if err := l.live.Get(ctx, l.lease, lease); err != nil {
		return 0, fmt.Errorf("read the lease %s: %w", l.lease, err)
	}
	if lease.Spec.LeaseTransitions == nil {
		return 0, nil
	}
	return int64(*lease.Spec.LeaseTransitions), nil
}

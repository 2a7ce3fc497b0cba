package controller

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// syncedCaches is ready once every cache has been filled. It runs on managers
// that are not the leader too, whose caches are kept warm.
type syncedCaches struct {
	mgr    manager.Manager
	synced atomic.Bool
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*syncedCaches) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *syncedCaches) Start(ctx context.Context) error {
	s.synced.Store(s.mgr.GetCache().WaitForCacheSync(ctx))
	<-ctx.Done()
	return nil
}

func (s *syncedCaches) check(*http.Request) error {
	if !s.synced.Load() {
		return errors.New("caches are being filled")
	}
	return nil
}

package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// waker puts objects into the queue of a reconciler from outside of watches.
// The queue holds each object once however often it is woken, so that whoever
// wakes never waits.
type waker struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// source connects w to the queue of the controller that watches it. Until then
// nothing is lost: every object is reconciled when the controller starts.
func (w *waker) source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		return nil
	})
}

func (w *waker) wake(key types.NamespacedName) { w.wakeAfter(key, 0) }

func (w *waker) wakeAfter(key types.NamespacedName, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.queue == nil:
	case wait > 0:
		w.queue.AddAfter(reconcile.Request{NamespacedName: key}, wait)
	default:
		w.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/suaveplan/storagemux/api/v1alpha1"
	"github.com/suaveplan/storagemux/internal/controller"
)

// watcher sees every status as it comes.
type watcher struct {
	mu      sync.Mutex
	muxes   map[string]*v1alpha1.StorageMux
	waiting []*waiting
}

// waiting is for a number of muxes to come into a state.
type waiting struct {
	is   func(*v1alpha1.StorageMux) bool
	left map[string]bool
	at   map[string]time.Time
	over chan struct{}
}

// watch follows statuses, and hands config Secrets to secrets.
func watch(ctx context.Context, config *rest.Config, secrets func(context.Context, *corev1.Secret)) (*watcher, error) {
	c, err := cache.New(config, cache.Options{Scheme: controller.NewScheme(), ByObject: map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Label: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.LabelManagedByValue})},
	}})
	if err != nil {
		return nil, fmt.Errorf("make a cache: %w", err)
	}
	w := &watcher{muxes: map[string]*v1alpha1.StorageMux{}}
	for object, handle := range map[client.Object]func(any){
		&v1alpha1.StorageMux{}: func(o any) { w.see(o.(*v1alpha1.StorageMux)) },
		&corev1.Secret{}:       func(o any) { secrets(ctx, o.(*corev1.Secret)) },
	} {
		informer, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: handle, UpdateFunc: func(_, now any) { handle(now) },
		}); err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
	}
	go func() { _ = c.Start(ctx) }()
	if !c.WaitForCacheSync(ctx) {
		return nil, ctx.Err()
	}
	return w, nil
}

func (w *watcher) see(mux *v1alpha1.StorageMux) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.muxes[mux.Name] = mux
	for _, one := range w.waiting {
		one.see(mux, now)
	}
}

func (a *waiting) see(mux *v1alpha1.StorageMux, now time.Time) {
	if !a.left[mux.Name] || !a.is(mux) {
		return
	}
	delete(a.left, mux.Name)
	a.at[mux.Name] = now
	if len(a.left) == 0 {
		close(a.over)
	}
}

// expect begins to wait until each of the muxes has come into a state.
func (w *watcher) expect(names []string, is func(*v1alpha1.StorageMux) bool) *waiting {
	a := &waiting{is: is, left: map[string]bool{}, at: map[string]time.Time{}, over: make(chan struct{})}
	for _, name := range names {
		a.left[name] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, a)
	now := time.Now()
	for _, name := range names {
		if mux := w.muxes[name]; mux != nil {
			a.see(mux, now)
		}
	}
	return a
}

// wait ends a, and returns when each mux came into the state.
func (w *watcher) wait(ctx context.Context, a *waiting, limit time.Duration) (map[string]time.Time, error) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i := range w.waiting {
			if w.waiting[i] == a {
				w.waiting = append(w.waiting[:i], w.waiting[i+1:]...)
				break
			}
		}
	}()
	select {
	case <-a.over:
		return a.at, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(limit):
		w.mu.Lock()
		defer w.mu.Unlock()
		return nil, fmt.Errorf("%d muxes did not come into the state within %s", len(a.left), limit)
	}
}

// revision is what the status of a mux said last.
func (w *watcher) revision(name string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.muxes[name] == nil {
		return 0
	}
	return w.muxes[name].Status.Revision
}

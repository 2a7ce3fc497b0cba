package controller

import "sync"

// turns bounds how many passes over StorageBackends write at once, so that where
// much changes at once muxes go first. A pass that finds no turn ends; its
// object comes again when one is free, in the order in which they asked.
type turns struct {
	limit int
	wake  func(objectKey)

	mu      sync.Mutex
	held    map[objectKey]bool // those that write, and those woken to
	waiting []objectKey
	asked   map[objectKey]bool // those in waiting
}

// take reports whether the pass over key may write. It ends with end.
func (t *turns) take(key objectKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.held, t.asked = map[objectKey]bool{}, map[objectKey]bool{}
	}
	switch {
	case t.held[key]:
		return true
	case len(t.held) < t.limit:
		t.held[key] = true
		return true
	case !t.asked[key]:
		t.asked[key] = true
		t.waiting = append(t.waiting, key)
	}
	return false
}

// end ends a pass over key, whether it had a turn or not.
func (t *turns) end(key objectKey) {
	t.mu.Lock()
	if !t.held[key] {
		t.mu.Unlock()
		return
	}
	delete(t.held, key)
	var next objectKey
	woken := len(t.waiting) > 0
	if woken {
		next, t.waiting = t.waiting[0], t.waiting[1:]
		delete(t.asked, next)
		t.held[next] = true
	}
	t.mu.Unlock()
	if woken {
		t.wake(next)
	}
}

package spool

import (
	"sync"
	"time"
)

const (
	// chunkSize is the unit in which memory is taken from the budget.
	chunkSize = 64 << 10
	// slabSize is the unit in which it is taken from the system.
	slabSize = 16 * chunkSize
	// idleTime is how long memory that is free is kept from the system.
	idleTime = 30 * time.Second
)

type chunk [chunkSize]byte

// memory hands out chunks outside of Go's heap: within it the collector would let
// as much garbage pile up beside the bodies as they are large. What has been taken
// from the system stays mapped, but the system gets the pages back.
type memory struct {
	mu   sync.Mutex
	free []*chunk
	idle *time.Timer
}

func (m *memory) get() (*chunk, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.free) == 0 {
		slab, err := mapSlab()
		if err != nil {
			return nil, err
		}
		for at := 0; at < len(slab); at += chunkSize {
			m.free = append(m.free, (*chunk)(slab[at:]))
		}
	}
	last := len(m.free) - 1
	c := m.free[last]
	m.free = m.free[:last]
	return c, nil
}

func (m *memory) put(chunks []*chunk) {
	if len(chunks) == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, chunks...)
	if m.idle == nil {
		m.idle = time.AfterFunc(idleTime, m.release)
	}
}

// release gives the pages of what is free back.
func (m *memory) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.idle = nil
	for _, c := range m.free {
		releasePages(c[:])
	}
}

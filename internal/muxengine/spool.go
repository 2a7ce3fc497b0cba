package muxengine

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// DefaultSpoolBudget is the memory of the spool that a mux makes for itself.
const DefaultSpoolBudget = 64 << 20

// ErrSpoolFull is what a Spool returns when its room is used up.
var ErrSpoolFull = errors.New("the room for bodies that may be read again is used up")

// NewMemorySpool returns a Spool that keeps up to budget bytes, of all bodies
// together, in memory.
func NewMemorySpool(budget int64) Spool {
	s := &memorySpool{}
	s.free.Store(budget)
	return s
}

type memorySpool struct{ free atomic.Int64 }

func (s *memorySpool) Open(size int64) (Spooled, error) {
	if size > s.free.Load() {
		return nil, ErrSpoolFull
	}
	return &memorySpooled{spool: s}, nil
}

func (s *memorySpool) take(n int64) bool {
	if s.free.Add(-n) < 0 {
		s.free.Add(n)
		return false
	}
	return true
}

// spoolChunk is the size of one allocation: bodies grow without being copied.
const spoolChunk = 64 << 10

type memorySpooled struct {
	spool *memorySpool

	mu     sync.RWMutex
	chunks [][]byte
	size   int64
	taken  int64
}

func (m *memorySpooled) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	room := m.taken - m.size
	if need := int64(len(p)) - room; need > 0 {
		need = (need + spoolChunk - 1) / spoolChunk * spoolChunk
		if !m.spool.take(need) {
			return 0, ErrSpoolFull
		}
		m.taken += need
	}
	written := len(p)
	for len(p) > 0 {
		if m.size == int64(len(m.chunks))*spoolChunk {
			m.chunks = append(m.chunks, make([]byte, spoolChunk))
		}
		n := copy(m.chunks[len(m.chunks)-1][m.size%spoolChunk:], p)
		m.size += int64(n)
		p = p[n:]
	}
	return written, nil
}

func (m *memorySpooled) ReadAt(p []byte, off int64) (int, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	read := 0
	for read < len(p) && off < m.size {
		end := min(m.size-off/spoolChunk*spoolChunk, spoolChunk)
		n := copy(p[read:], m.chunks[off/spoolChunk][off%spoolChunk:end])
		read += n
		off += int64(n)
	}
	if read < len(p) {
		return read, io.EOF
	}
	return read, nil
}

func (m *memorySpooled) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spool.free.Add(m.taken)
	m.chunks, m.size, m.taken = nil, 0, 0
	return nil
}

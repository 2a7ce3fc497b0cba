package spool

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/suaveplan/storagemux/internal/muxengine"
)

// Options bound a Spool.
type Options struct {
	// Memory is the most bytes kept in memory, of all bodies together. It
	// is used in pieces of 64 KiB.
	Memory int64
	// Disk is the most bytes kept in files of Dir. Zero, or an empty Dir,
	// is none.
	Disk int64
	// Dir is an existing folder.
	Dir string
}

// Spool implements muxengine.Spool.
type Spool struct {
	dir          string
	memory, disk budget
	refused      atomic.Int64
	chunks       memory
}

var _ muxengine.Spool = (*Spool)(nil)

// New returns a Spool, after trying that files can be made in opts.Dir.
func New(opts Options) (*Spool, error) {
	s := &Spool{dir: opts.Dir}
	s.memory.limit = opts.Memory
	if opts.Dir == "" || opts.Disk <= 0 {
		return s, nil
	}
	s.disk.limit = opts.Disk
	file, err := s.newFile()
	if err != nil {
		return nil, err
	}
	return s, file.Close()
}

// newFile makes a file without a name, which is gone with its last descriptor.
func (s *Spool) newFile() (*os.File, error) {
	file, err := os.CreateTemp(s.dir, "body-*")
	if err != nil {
		return nil, fmt.Errorf("make a spool file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("unlink a spool file: %w", err)
	}
	return file, nil
}

// Open implements muxengine.Spool.
func (s *Spool) Open(size int64) (muxengine.Spooled, error) {
	if size > s.memory.free()+s.disk.free() {
		s.refused.Add(1)
		return nil, muxengine.ErrSpoolFull
	}
	return &spooled{spool: s}, nil
}

// chunk takes a chunk from the budget.
func (s *Spool) chunk() (*chunk, bool) {
	if !s.memory.take(chunkSize) {
		return nil, false
	}
	c, err := s.chunks.get()
	if err != nil {
		// Without memory it goes on as if the budget were used up.
		s.memory.give(chunkSize)
		return nil, false
	}
	return c, true
}

// Usage is what a Spool holds at one moment, in bytes, and the number of times
// that it had no room.
type Usage struct {
	Memory, MemoryLimit int64
	Disk, DiskLimit     int64
	Refused             int64
}

// Usage returns the figures of this moment.
func (s *Spool) Usage() Usage {
	return Usage{
		Memory: s.memory.used.Load(), MemoryLimit: s.memory.limit,
		Disk: s.disk.used.Load(), DiskLimit: s.disk.limit,
		Refused: s.refused.Load(),
	}
}

// budget counts bytes that are in use against a limit.
type budget struct {
	limit int64
	used  atomic.Int64
}

func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

func (b *budget) free() int64 { return max(0, b.limit-b.used.Load()) }

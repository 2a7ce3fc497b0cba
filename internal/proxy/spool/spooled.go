package spool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/suaveplan/storagemux/internal/muxengine"
)

// spooled is one body: its head lies in chunks, its tail, from the first byte
// on that memory had no room for, in a file.
type spooled struct {
	spool *Spool

	mu     sync.RWMutex
	chunks []*chunk
	inMem  int64
	file   *os.File
	onDisk int64
	full   bool
}

// Write implements io.Writer. It keeps all of p or returns ErrSpoolFull.
func (b *spooled) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full {
		return 0, muxengine.ErrSpoolFull
	}
	kept := 0
	for b.file == nil && kept < len(p) {
		used := b.inMem % chunkSize
		if used == 0 {
			c, ok := b.spool.chunk()
			if !ok {
				break
			}
			b.chunks = append(b.chunks, c)
		}
		n := copy(b.chunks[len(b.chunks)-1][used:], p[kept:])
		b.inMem += int64(n)
		kept += n
	}
	if kept == len(p) {
		return kept, nil
	}
	if err := b.writeFile(p[kept:]); err != nil {
		// What was kept of p is beyond what the caller may read; the
		// body takes no more.
		b.full = true
		b.spool.refused.Add(1)
		return 0, err
	}
	return len(p), nil
}

func (b *spooled) writeFile(p []byte) error {
	if !b.spool.disk.take(int64(len(p))) {
		return muxengine.ErrSpoolFull
	}
	err := b.openFile()
	if err == nil {
		_, err = b.file.WriteAt(p, b.onDisk)
	}
	if err != nil {
		b.spool.disk.give(int64(len(p)))
		return errors.Join(muxengine.ErrSpoolFull, fmt.Errorf("write a spool file: %w", err))
	}
	b.onDisk += int64(len(p))
	return nil
}

func (b *spooled) openFile() (err error) {
	if b.file == nil {
		b.file, err = b.spool.newFile()
	}
	return err
}

// ReadAt implements io.ReaderAt.
func (b *spooled) ReadAt(p []byte, off int64) (int, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	read := 0
	for read < len(p) && off < b.inMem {
		start := off % chunkSize
		end := min(b.inMem-(off-start), chunkSize)
		n := copy(p[read:], b.chunks[off/chunkSize][start:end])
		read += n
		off += int64(n)
	}
	if read < len(p) && off-b.inMem < b.onDisk {
		tail := p[read:min(int64(len(p)), int64(read)+b.onDisk-(off-b.inMem))]
		n, err := b.file.ReadAt(tail, off-b.inMem)
		read += n
		if n < len(tail) {
			return read, fmt.Errorf("read a spool file: %w", err)
		}
	}
	if read < len(p) {
		return read, io.EOF
	}
	return read, nil
}

// Close frees the body's room.
func (b *spooled) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spool.chunks.put(b.chunks)
	b.spool.memory.give(int64(len(b.chunks)) * chunkSize)
	b.spool.disk.give(b.onDisk)
	b.chunks, b.inMem, b.onDisk, b.full = nil, 0, 0, true
	if b.file == nil {
		return nil
	}
	err := b.file.Close()
	b.file = nil
	return err
}

//go:build unix

package spool

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func mapSlab() ([]byte, error) {
	slab, err := unix.Mmap(-1, 0, slabSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map memory for a body: %w", err)
	}
	return slab, nil
}

// releasePages lets the system have the memory; what is in it is lost.
func releasePages(p []byte) { _ = unix.Madvise(p, unix.MADV_DONTNEED) }

package http

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// Temporary files are removed by whoever writes them, unless it crashes or loses
// the server. Those that are left are looked for once an hour at most, while
// objects are written, and removed when nothing was written to them for a day,
// some at a time. A server whose clock is a day ahead of ours keeps its own longer.
const (
	sweepEvery = time.Hour
	tmpExpiry  = 24 * time.Hour
	maxSwept   = 100
)

// maybeSweep begins to sweep, unless that was done a short time ago.
func (s *Storage) maybeSweep() {
	now := time.Now()
	last := s.swept.Load()
	if now.UnixNano()-last >= int64(sweepEvery) && s.swept.CompareAndSwap(last, now.UnixNano()) {
		s.background.Go(func() { s.sweep(now) })
	}
}

// sweep removes temporary files that are too old. It fails in silence: the next
// one looks again.
func (s *Storage) sweep(now time.Time) {
	const op = "sweep"
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpTimeout)
	defer cancel()
	entries, err := s.propfind(ctx, op, storage.ReservedTmp, "1")
	if err != nil {
		return
	}
	removed := 0
	for _, e := range entries {
		modified := e.info.ModTime
		if e.folder || modified.IsZero() || now.Sub(modified) < tmpExpiry || !strings.HasPrefix(e.info.Key, storage.ReservedTmp) {
			continue
		}
		resp, err := s.sendOnce(ctx, &request{op: op, method: http.MethodDelete, path: e.info.Key})
		if err != nil {
			return
		}
		wire.Drain(resp)
		if removed++; removed == maxSwept {
			return
		}
	}
}

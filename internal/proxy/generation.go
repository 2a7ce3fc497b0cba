package proxy

import (
	"context"
	"sync/atomic"

	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
)

// generation is the mux as the front sees it under one document. It counts the
// writes that began under it: a member that took writes then, and takes none
// now, may still get what those bring.
type generation struct {
	*muxengine.Mux
	writes atomic.Int64
	// ended is called when the last write ends, maybe more than once.
	ended func()
}

// SetStream implements storage.Storage.
func (g *generation) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	g.writes.Add(1)
	defer g.end()
	return g.Mux.SetStream(ctx, key, body, opts)
}

// SetPartial implements storage.Storage.
func (g *generation) SetPartial(ctx context.Context, key string, offset int64, body storage.Body) (storage.Info, error) {
	g.writes.Add(1)
	defer g.end()
	return g.Mux.SetPartial(ctx, key, offset, body)
}

// UploadPart and CompleteUpload implement storage.Multipart.
func (g *generation) UploadPart(ctx context.Context, key, upload string, number int, body storage.Body, opts storage.SetOptions) (storage.Part, error) {
	g.writes.Add(1)
	defer g.end()
	return g.Mux.UploadPart(ctx, key, upload, number, body, opts)
}

func (g *generation) CompleteUpload(ctx context.Context, key, upload string, parts []storage.Part, opts storage.SetOptions) (storage.Info, error) {
	g.writes.Add(1)
	defer g.end()
	return g.Mux.CompleteUpload(ctx, key, upload, parts, opts)
}

func (g *generation) end() {
	if g.writes.Add(-1) == 0 {
		g.ended()
	}
}

// generations are the current generation, last, and those before it that still
// had writes when the newest began. Index is the number of the first.
type generations struct {
	first int
	list  []*generation
}

// next returns generations with g as the current one.
func (g generations) next(current *generation) generations {
	kept := generations{first: g.first}
	for _, one := range g.list {
		if len(kept.list) == 0 && one.writes.Load() == 0 && one != g.list[len(g.list)-1] {
			kept.first++
			continue
		}
		kept.list = append(kept.list, one)
	}
	kept.list = append(kept.list, current)
	return kept
}

// current is the number of the newest generation.
func (g generations) current() int { return g.first + len(g.list) - 1 }

// writesBefore counts the writes in flight that began before generation n.
func (g generations) writesBefore(n int) int64 {
	var writes int64
	for i, one := range g.list {
		if g.first+i < n {
			writes += one.writes.Load()
		}
	}
	return writes
}

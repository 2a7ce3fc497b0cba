package http

import (
	"cmp"
	"container/heap"
	"context"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// List implements storage.Storage. It asks for those folders only that lie on
// the way to entries of the page, one at a time, and goes on with whatever has
// the smallest key: servers give the names in a folder in an order of their own.
func (s *Storage) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	const op = "List"
	if err := s.writable(op); err != nil {
		return storage.ListPage{}, err
	}
	if ctx.Err() != nil {
		return storage.ListPage{}, storage.Interrupted(ctx, op, "beginning")
	}
	pager := storage.NewPager(opts)
	end := storage.PrefixEnd(opts.Prefix)
	start := opts.Prefix[:strings.LastIndexByte(opts.Prefix, '/')+1]
	if start != "" && !isPath(strings.TrimSuffix(start, "/")) {
		return storage.ListPage{}, nil
	}
	pending := entries{{info: storage.Info{Key: start}, folder: true}}
	for len(pending) > 0 {
		e := heap.Pop(&pending).(entry)
		key := e.info.Key
		from, done := pager.From()
		switch {
		case done, end != "" && key >= end:
			return pager.Page(), nil
		case !e.folder:
			if !pager.Add(e.info) {
				return pager.Page(), nil
			}
		case key != "" && storage.PrefixEnd(key) <= from:
			// All that is below was listed or folded.
		default:
			children, err := s.propfind(ctx, op, key, "1")
			if storage.CodeOf(err) == storage.CodeKeyNotFound {
				continue // removed meanwhile, or a prefix that is no folder
			}
			if err != nil {
				return storage.ListPage{}, err
			}
			for _, child := range children {
				if parentOf(child.info.Key) == key && child.info.Key != key && child.info.Key != "" && mayMatch(child, from, opts.Prefix) {
					heap.Push(&pending, child)
				}
			}
		}
	}
	return pager.Page(), nil
}

// mayMatch reports whether e, or something in it, may be in a listing from
// from on with prefix.
func mayMatch(e entry, from, prefix string) bool {
	key := e.info.Key
	if key == storage.ReservedPrefix {
		return false
	}
	if !e.folder {
		return key >= from && strings.HasPrefix(key, prefix)
	}
	return storage.PrefixEnd(key) > from && (strings.HasPrefix(key, prefix) || strings.HasPrefix(prefix, key))
}

// entries is a heap: the smallest key comes first.
type entries []entry

func (h entries) Len() int           { return len(h) }
func (h entries) Less(i, j int) bool { return cmp.Less(h[i].info.Key, h[j].info.Key) }
func (h entries) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *entries) Push(e any)        { *h = append(*h, e.(entry)) }
func (h *entries) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

package tree

import (
	"cmp"
	"container/heap"
	"context"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Entry is what a listing of a folder says of a file or folder in it.
type Entry struct {
	// Info.Key is the whole key, with a slash at its end for a folder.
	Info   storage.Info
	Folder bool
}

// Folder lists what is directly in a folder, in any order. The folder's key
// ends with a slash, or is empty for the root. A folder that is not there has
// nothing in it.
type Folder func(ctx context.Context, folder string) ([]Entry, error)

// List returns a page of the keys below the root. It asks for those folders only
// that lie on the way to entries of the page, one at a time, and goes on with
// whatever has the smallest key.
func List(ctx context.Context, opts storage.ListOptions, in Folder) (storage.ListPage, error) {
	pager := storage.NewPager(opts)
	end := storage.PrefixEnd(opts.Prefix)
	start := opts.Prefix[:strings.LastIndexByte(opts.Prefix, '/')+1]
	if start != "" && !IsPath(strings.TrimSuffix(start, "/")) {
		return storage.ListPage{}, nil
	}
	pending := entries{{Info: storage.Info{Key: start}, Folder: true}}
	for len(pending) > 0 {
		e := heap.Pop(&pending).(Entry)
		key := e.Info.Key
		from, done := pager.From()
		switch {
		case done, end != "" && key >= end:
			return pager.Page(), nil
		case !e.Folder:
			if !pager.Add(e.Info) {
				return pager.Page(), nil
			}
		case key != "" && storage.PrefixEnd(key) <= from:
			// All that is below was listed or folded.
		default:
			children, err := in(ctx, key)
			if err != nil {
				return storage.ListPage{}, err
			}
			for _, child := range children {
				if mayMatch(child, from, opts.Prefix) {
					heap.Push(&pending, child)
				}
			}
		}
	}
	return pager.Page(), nil
}

// IsPath reports whether key stays what it is when it becomes a path, which
// servers clean. There can be no object under another one.
func IsPath(key string) bool {
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// mayMatch reports whether e, or something in it, may be in a listing from
// from on with prefix.
func mayMatch(e Entry, from, prefix string) bool {
	key := e.Info.Key
	if key == storage.ReservedPrefix {
		return false
	}
	if !e.Folder {
		return key >= from && strings.HasPrefix(key, prefix)
	}
	return storage.PrefixEnd(key) > from && (strings.HasPrefix(key, prefix) || strings.HasPrefix(prefix, key))
}

// entries is a heap: the smallest key comes first.
type entries []Entry

func (h entries) Len() int           { return len(h) }
func (h entries) Less(i, j int) bool { return cmp.Less(h[i].Info.Key, h[j].Info.Key) }
func (h entries) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *entries) Push(e any)        { *h = append(*h, e.(Entry)) }
func (h *entries) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	*h = (*h)[:last]
	return e
}

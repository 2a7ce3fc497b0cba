package file

import (
	"container/heap"
	"context"
	"os"
	"path"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// List implements storage.Storage. It reads those folders only that lie on
// the way to entries of the page, each of them whole: its names are sorted by the
// keys they stand for, which is not the order of names in a folder ("a-b" comes
// before "a/c" although "a" comes before "a-b").
func (s *Storage) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	const op = "List"
	root, attributes, err := s.begin(ctx, op, storage.ProbeKey)
	if err != nil {
		return storage.ListPage{}, err
	}
	pager := storage.NewPager(opts)
	walk := cursor{root: root, top: root, dir: "."}
	defer walk.close()
	end := storage.PrefixEnd(opts.Prefix)
	start := opts.Prefix[:strings.LastIndexByte(opts.Prefix, '/')+1]
	pending := nodes{{key: start, dir: folder(start)}}
	for len(pending) > 0 {
		n := heap.Pop(&pending).(node)
		from, done := pager.From()
		switch {
		case done, end != "" && n.key >= end:
			pending = nil
		case n.dir == "":
			if !pager.Add(storage.Info{Key: n.key}) {
				pending = nil
			}
		case storage.PrefixEnd(n.key) != "" && storage.PrefixEnd(n.key) <= from:
			// All that is below was listed or folded.
		default:
			if ctx.Err() != nil {
				return storage.ListPage{}, storage.Interrupted(ctx, op, "reading folders")
			}
			children, err := expand(&walk, n, from, opts.Prefix)
			if err != nil {
				return storage.ListPage{}, wrap(err, op, "reading the folder %q", n.dir)
			}
			for _, child := range children {
				heap.Push(&pending, child)
			}
		}
	}
	page := pager.Page()
	if len(page.Objects)+len(page.Prefixes) == 0 {
		if err := s.volume.verify(root); err != nil {
			return storage.ListPage{}, s.unavailable(op, err)
		}
	}
	if page.Objects, err = s.describeAll(ctx, root, page.Objects, attributes); err != nil {
		return storage.ListPage{}, wrap(err, op, "reading the metadata of listed objects")
	}
	return page, nil
}

// describeAll fills in what listed keys have, and drops those that were
// deleted meanwhile.
func (s *Storage) describeAll(ctx context.Context, root *os.Root, listed []storage.Info, attributes bool) ([]storage.Info, error) {
	kept := listed[:0]
	for _, o := range listed {
		if ctx.Err() != nil {
			return nil, storage.Interrupted(ctx, "List", "reading metadata")
		}
		f, info, err := lookUp(root, locate(o.Key), o.Key, attributes)
		if err != nil {
			return nil, err
		}
		if f != nil {
			_ = f.Close()
			info.Metadata = nil
			kept = append(kept, info)
		}
	}
	return kept, nil
}

// cursor opens folders one after another. Most lie below the one before, which
// spares the way down from the top.
type cursor struct {
	top  *os.Root
	root *os.Root // of dir
	dir  string
}

func (c *cursor) open(dir string) (*os.File, error) {
	rest, below := strings.CutPrefix(dir, c.dir+"/")
	if !below {
		c.close()
		c.root, c.dir, rest = c.top, ".", dir
	}
	if rest != "." {
		next, err := c.root.OpenRoot(rest)
		if err != nil {
			return nil, err
		}
		c.close()
		c.root, c.dir = next, dir
	}
	return c.root.Open(".")
}

func (c *cursor) close() {
	if c.root != c.top {
		_ = c.root.Close()
		c.root = c.top
	}
}

// node is a file, whose key is exact, or a folder, all of whose keys begin
// with key. inside is as in pieceOf.
type node struct {
	key    string
	dir    string // "" for a file
	inside bool
}

// nodes is a heap: the node with the smallest key comes first, and with it the
// smallest key of all that is pending.
type nodes []node

func (h nodes) Len() int           { return len(h) }
func (h nodes) Less(i, j int) bool { return h[i].key < h[j].key }
func (h nodes) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *nodes) Push(n any)        { *h = append(*h, n.(node)) }
func (h *nodes) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	*h = (*h)[:last]
	return n
}

// expand reads the folder of n and returns what in it may have keys of at
// least from that begin with prefix.
func expand(walk *cursor, n node, from, prefix string) ([]node, error) {
	dir, err := walk.open(n.dir)
	if missing(err) || tooLongName(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if notFolder(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var children []node
	for _, entry := range entries {
		child, ok := childOf(n, entry.Name(), entry.IsDir())
		if !ok || !entry.IsDir() && !entry.Type().IsRegular() {
			continue
		}
		if child.dir == "" {
			if child.key < from || !strings.HasPrefix(child.key, prefix) || storage.ValidateKey(child.key) != nil {
				continue
			}
		} else {
			end := storage.PrefixEnd(child.key)
			if end != "" && end <= from || !strings.HasPrefix(child.key, prefix) && !strings.HasPrefix(prefix, child.key) {
				continue
			}
		}
		children = append(children, child)
	}
	return children, nil
}

// childOf says what name in the folder of n stands for.
func childOf(n node, name string, isDir bool) (node, bool) {
	p, ok := pieceOf(name, n.inside)
	if !ok || n.dir == "." && name == reservedDir && isDir {
		return node{}, false
	}
	child := node{key: n.key + p.text}
	switch {
	case isDir && p.alt, !isDir && p.open:
		return node{}, false
	case isDir:
		child.dir, child.inside = path.Join(n.dir, name), p.open
		if !p.open {
			child.key += "/"
		}
	}
	return child, true
}

package muxengine

import (
	"github.com/suaveplan/storagemux/internal/storage"
)

// mergePages merges pages that all begin after the same entry into one of at
// most limit entries, in byte order and without repetition. Of objects under the
// same key that of the first page counts. A page that has more to come bounds
// what may be taken from the others.
func mergePages(limit int, pages []storage.ListPage) storage.ListPage {
	var out storage.ListPage
	cursors := make([]cursor, len(pages))
	horizon := ""
	for i := range pages {
		cursors[i].page = &pages[i]
		if next := pages[i].Next; next != "" && (horizon == "" || next < horizon) {
			horizon = next
		}
	}
	last, more := "", false
	for n := 0; ; {
		name, at := smallest(cursors)
		if at < 0 {
			break
		}
		if horizon != "" && name > horizon {
			break
		}
		if n == limit {
			more = true
			break
		}
		if cursors[at].isPrefix() {
			out.Prefixes = append(out.Prefixes, name)
		} else {
			out.Objects = append(out.Objects, cursors[at].page.Objects[cursors[at].object])
		}
		for i := range cursors {
			cursors[i].skip(name)
		}
		last = name
		n++
	}
	switch {
	case more:
		out.Next = last
	case horizon != "":
		out.Next = horizon
	}
	return out
}

// cursor walks through one page's objects and prefixes together.
type cursor struct {
	page           *storage.ListPage
	object, prefix int
}

func (c *cursor) head() (string, bool) {
	objects, prefixes := c.page.Objects[c.object:], c.page.Prefixes[c.prefix:]
	switch {
	case len(objects) == 0 && len(prefixes) == 0:
		return "", false
	case len(objects) == 0:
		return prefixes[0], true
	case len(prefixes) == 0:
		return objects[0].Key, true
	default:
		return min(objects[0].Key, prefixes[0]), true
	}
}

func (c *cursor) isPrefix() bool {
	objects, prefixes := c.page.Objects[c.object:], c.page.Prefixes[c.prefix:]
	return len(objects) == 0 || len(prefixes) > 0 && prefixes[0] < objects[0].Key
}

func (c *cursor) skip(name string) {
	if c.object < len(c.page.Objects) && c.page.Objects[c.object].Key == name {
		c.object++
	}
	if c.prefix < len(c.page.Prefixes) && c.page.Prefixes[c.prefix] == name {
		c.prefix++
	}
}

// smallest returns the first entry in byte order and the cursor it is at, or -1.
func smallest(cursors []cursor) (string, int) {
	best, at := "", -1
	for i := range cursors {
		if name, ok := cursors[i].head(); ok && (at < 0 || name < best) {
			best, at = name, i
		}
	}
	return best, at
}

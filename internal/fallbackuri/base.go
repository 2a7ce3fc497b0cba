package fallbackuri

import (
	"context"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// key returns the key of a call within the target.
func (c *candidate) key(key string) string {
	if c.nested != nil || key == "" {
		return c.target.Key + key
	}
	here, there := c.place(key)
	return there + strings.TrimPrefix(key, here)
}

// partsUnder is where parts of uploads are that lie under the base that follows.
// They stay below the target's own reserved prefix, and so are hidden there too.
const partsUnder = storage.ReservedParts + "under/"

// place returns what keys that begin like key have at their beginning here, and
// what they have there instead within the target.
func (c *candidate) place(key string) (here, there string) {
	base := c.base()
	if base != "" && strings.HasPrefix(key, storage.ReservedParts) {
		return storage.ReservedParts, partsUnder + base
	}
	return "", base
}

// base is what all keys under the candidate begin with.
func (c *candidate) base() string {
	if base := c.target.Key; base == "" || strings.HasSuffix(base, "/") {
		return base
	}
	return c.target.Key + "/"
}

// list returns a page of the keys under the candidate's base, as seen from there.
func (c *candidate) list(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	here, there := "", ""
	if c.nested == nil {
		here, there = c.place(opts.Prefix)
	}
	if there == "" {
		return c.target.Storage.List(ctx, opts)
	}
	inside := func(key string) string { return there + strings.TrimPrefix(key, here) }
	outside := func(key string) string { return here + strings.TrimPrefix(key, there) }
	hidden := func(key string) bool { return storage.IsReserved(key) && !opts.Reserved }
	opts.Prefix = inside(opts.Prefix)
	if opts.After != "" {
		opts.After = inside(opts.After)
	}
	page, err := c.target.Storage.List(ctx, opts)
	if err != nil {
		return storage.ListPage{}, err
	}
	var seen storage.ListPage
	if page.Next != "" {
		seen.Next = outside(page.Next)
	}
	for _, o := range page.Objects {
		if o.Key = outside(o.Key); o.Key != "" && !hidden(o.Key) {
			seen.Objects = append(seen.Objects, o)
		}
	}
	for _, p := range page.Prefixes {
		if p = outside(p); !hidden(p) {
			seen.Prefixes = append(seen.Prefixes, p)
		}
	}
	return seen, nil
}

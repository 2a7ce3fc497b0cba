package storage

import "strings"

// Pager makes one page of a listing from entries that are offered in ascending
// byte order of their keys: it drops what the options exclude, and with it what
// is reserved, and folds keys into common prefixes.
type Pager struct {
	opts ListOptions
	page ListPage
	last string // the last entry of the page, or opts.After
	full bool
}

// NewPager returns a Pager for opts.
func NewPager(opts ListOptions) *Pager {
	return &Pager{opts: opts, last: opts.After}
}

// From returns a lower bound: no key below it can add to the page, and nothing
// can if done. A source that can seek need not offer keys below it.
func (p *Pager) From() (from string, done bool) {
	from = p.opts.Prefix
	if after := p.last; after >= from && after != "" {
		from = after + "\x00"
		if folded := p.fold(after); folded != "" {
			if from = PrefixEnd(folded); from == "" {
				return "", true
			}
		}
	}
	end := PrefixEnd(p.opts.Prefix)
	return from, p.full || end != "" && from >= end
}

// fold is Fold for any string, not only for those that begin with the prefix.
func (p *Pager) fold(key string) string {
	if !strings.HasPrefix(key, p.opts.Prefix) {
		return ""
	}
	return p.opts.Fold(key)
}

// Add offers the next entry, an object. It returns false once the page is
// complete; nothing more need be offered then.
func (p *Pager) Add(info Info) bool {
	if !strings.HasPrefix(info.Key, p.opts.Prefix) {
		return !p.full && info.Key < p.opts.Prefix
	}
	return p.add(p.opts.Fold(info.Key), info)
}

// AddPrefix offers the next entry, a common prefix that the source has folded.
func (p *Pager) AddPrefix(prefix string) bool {
	return p.add(prefix, Info{})
}

func (p *Pager) add(prefix string, info Info) bool {
	entry := info.Key
	if prefix != "" {
		entry = prefix
	}
	if entry <= p.last || !p.opts.Reserved && (IsReserved(entry) || IsReserved(info.Key)) {
		return !p.full
	}
	if len(p.page.Objects)+len(p.page.Prefixes) == p.opts.PageLimit() {
		p.full = true
		p.page.Next = p.last
		return false
	}
	if prefix != "" {
		p.page.Prefixes = append(p.page.Prefixes, prefix)
	} else {
		p.page.Objects = append(p.page.Objects, info)
	}
	p.last = entry
	return true
}

// Room returns how many more entries fit.
func (p *Pager) Room() int {
	return p.opts.PageLimit() - len(p.page.Objects) - len(p.page.Prefixes)
}

// More says that there is more than was offered, for a source that knows that
// without another entry at hand. It returns the page.
func (p *Pager) More() ListPage {
	p.page.Next = p.last
	return p.page
}

// Page returns the page made so far.
func (p *Pager) Page() ListPage { return p.page }

// PrefixEnd returns the smallest string above all that begin with prefix, or
// "" if there is none.
func PrefixEnd(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

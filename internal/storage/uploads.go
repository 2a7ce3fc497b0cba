package storage

import (
	"cmp"
	"slices"
	"strings"
)

// PageLimit returns the number of entries that the page may have.
func (o ListUploadsOptions) PageLimit() int { return ListOptions{Limit: o.Limit}.PageLimit() }

// PageUploads makes a page from uploads, in any order, and from common prefixes
// that were folded already. It drops what opts exclude and what is reserved. An
// AfterID that is not among the uploads of AfterKey, since it ended meanwhile,
// excludes none of them.
func PageUploads(uploads []Upload, prefixes []string, opts ListUploadsOptions) UploadPage {
	uploads = slices.Clone(uploads)
	slices.SortFunc(uploads, func(a, b Upload) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), a.Initiated.Compare(b.Initiated), strings.Compare(a.ID, b.ID))
	})
	after := -1
	if opts.AfterID != "" {
		after = slices.IndexFunc(uploads, func(u Upload) bool { return u.Key == opts.AfterKey && u.ID == opts.AfterID })
	}
	listing := ListOptions{Prefix: opts.Prefix, Delimiter: opts.Delimiter}
	prefixes = slices.Clone(prefixes)
	var single []Upload
	for i, u := range uploads {
		passed := u.Key < opts.AfterKey || u.Key == opts.AfterKey && (opts.AfterID == "" || i <= after)
		if passed || !strings.HasPrefix(u.Key, opts.Prefix) || IsReserved(u.Key) {
			continue
		}
		if prefix := listing.Fold(u.Key); prefix != "" {
			prefixes = append(prefixes, prefix)
			continue
		}
		single = append(single, u)
	}
	slices.Sort(prefixes)
	prefixes = slices.DeleteFunc(slices.Compact(prefixes), func(p string) bool { return p <= opts.AfterKey || IsReserved(p) })
	return mergeUploads(single, prefixes, opts.PageLimit())
}

// mergeUploads takes entries in byte order from both lists up to the limit.
func mergeUploads(uploads []Upload, prefixes []string, limit int) UploadPage {
	var page UploadPage
	var last Upload // of which a prefix has the key only
	for range limit {
		switch {
		case len(uploads) > 0 && (len(prefixes) == 0 || uploads[0].Key < prefixes[0]):
			last = uploads[0]
			page.Uploads, uploads = append(page.Uploads, last), uploads[1:]
		case len(prefixes) > 0:
			last = Upload{Key: prefixes[0]}
			page.Prefixes, prefixes = append(page.Prefixes, last.Key), prefixes[1:]
		}
	}
	if len(uploads)+len(prefixes) > 0 {
		page.NextKey = last.Key
		if len(uploads) > 0 && uploads[0].Key == last.Key {
			page.NextID = last.ID
		}
	}
	return page
}

package muxengine

import (
	"context"
	"slices"
	"sync"

	"github.com/suaveplan/storagemux/internal/storage"
)

// ListUploads implements storage.Multipart. In modes that walk it merges the
// uploads of all members; those of a fan-out cannot be paired, which is
// UNSUPPORTED.
func (m *Mux) ListUploads(ctx context.Context, opts storage.ListUploadsOptions) (storage.UploadPage, error) {
	n := m.node.Load()
	if err := n.takesParts(); err != nil {
		return storage.UploadPage{}, err
	}
	req := &request{op: opListUploads, upload: &uploadRequest{uploads: opts}}
	if opts.AfterID != "" {
		id, err := decodeUploadID(opts.AfterID)
		if err != nil {
			return storage.UploadPage{}, err
		}
		req.upload.id = id
	}
	rep, err := n.do(ctx, req, nil)
	if err != nil {
		return storage.UploadPage{}, err
	}
	return rep.upload.uploads, nil
}

// listUploads merges the pages of all members. Uploads of the same key follow
// each other member by member, so that a page may end anywhere.
func (c *call) listUploads() (reply, error) {
	n, up := c.node, c.req.upload
	if n.mode.write == fanOut && len(n.members) > 1 {
		return reply{}, storage.Errorf(storage.CodeUnsupported, c.req.op.String(), "the uploads of several backends that are written to together cannot be paired")
	}
	at := len(n.members)
	if up.uploads.AfterID != "" {
		at = slices.IndexFunc(n.members, up.id.covers)
		if at < 0 {
			return reply{}, noUpload("the backend of the upload that the page begins after is gone")
		}
	}
	pages := make([]storage.UploadPage, len(n.members))
	errs := make([]error, len(n.members))
	c.attempts = len(n.members)
	var wg sync.WaitGroup
	for i, m := range n.members {
		wg.Go(func() { pages[i], errs[i] = c.uploadsOn(m, i, at) })
	}
	wg.Wait()
	var failed []outcome
	for i, err := range errs {
		if err != nil {
			failed = append(failed, outcome{m: n.members[i], err: err})
		}
	}
	if len(failed) > 0 {
		return reply{}, c.refusal(failed)
	}
	limit := up.uploads.Limit
	if limit <= 0 || limit > storage.MaxListLimit {
		limit = storage.MaxListLimit
	}
	return reply{upload: &uploadReply{uploads: mergeUploads(limit, pages)}}, nil
}

// uploadsOn returns the page of one member. The page before ended with an upload
// of the member at: those of the same key on later members are still to come.
func (c *call) uploadsOn(m *member, i, at int) (storage.UploadPage, error) {
	ask := func(opts storage.ListUploadsOptions) (storage.UploadPage, error) {
		upload := *c.req.upload
		upload.uploads = opts
		req := c.req
		req.upload = &upload
		out := c.askOne(m, &req, i, len(c.node.members), nil)
		if out.err != nil {
			return storage.UploadPage{}, out.err
		}
		return out.rep.upload.uploads, nil
	}
	opts := c.req.upload.uploads
	if i != at {
		opts.AfterID = ""
	}
	page, err := ask(opts)
	if err != nil || i <= at || c.req.upload.uploads.AfterID == "" {
		return page, err
	}
	// The key is the smallest of those that begin with it.
	same, err := ask(storage.ListUploadsOptions{Prefix: opts.AfterKey, Limit: opts.Limit})
	if err != nil {
		return storage.UploadPage{}, err
	}
	last := slices.IndexFunc(same.Uploads, func(u storage.Upload) bool { return u.Key != opts.AfterKey })
	if last < 0 && same.NextKey == opts.AfterKey {
		return same, nil
	}
	if last >= 0 {
		same.Uploads = same.Uploads[:last]
	}
	page.Uploads = append(same.Uploads, page.Uploads...)
	return page, nil
}

// mergeUploads merges pages into one of at most limit entries.
func mergeUploads(limit int, pages []storage.UploadPage) storage.UploadPage {
	type entry struct {
		name   string
		page   int
		upload *storage.Upload // nil for a prefix
	}
	var entries []entry
	for i, page := range pages {
		for j := range page.Uploads {
			entries = append(entries, entry{page.Uploads[j].Key, i, &page.Uploads[j]})
		}
		for _, prefix := range page.Prefixes {
			entries = append(entries, entry{prefix, i, nil})
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		switch {
		case a.name < b.name:
			return -1
		case a.name > b.name:
			return 1
		default:
			return a.page - b.page
		}
	})
	// Nothing may be taken from beyond the place where a page was cut.
	beyond := func(e entry) bool {
		for i, page := range pages {
			if page.NextKey != "" && (e.name > page.NextKey || e.name == page.NextKey && e.page > i) {
				return true
			}
		}
		return false
	}
	var out storage.UploadPage
	var last entry
	more := slices.ContainsFunc(pages, func(p storage.UploadPage) bool { return p.NextKey != "" })
	for n, e := range entries {
		if n == limit || beyond(e) {
			more = true
			break
		}
		if e.upload != nil {
			out.Uploads = append(out.Uploads, *e.upload)
		} else if len(out.Prefixes) == 0 || out.Prefixes[len(out.Prefixes)-1] != e.name {
			out.Prefixes = append(out.Prefixes, e.name)
		}
		last = e
	}
	if more {
		out.NextKey = last.name
		if last.upload != nil {
			out.NextID = last.upload.ID
		}
	}
	return out
}

// listUploadsOf returns the page of a leaf, with the ids that the mux gives them.
func (a *attempt) listUploadsOf(ctx context.Context, s storage.Multipart, key leafKey) (storage.UploadPage, error) {
	up := a.req.upload
	opts := up.uploads
	if opts.AfterID != "" {
		opts.AfterID = up.id.Leaves[up.id.position(key)].ID
	}
	page, err := s.ListUploads(ctx, opts)
	if err != nil {
		return storage.UploadPage{}, err
	}
	named := func(id string) string {
		encoded, encodeErr := uploadID{Leaves: []leafUpload{{key, id}}}.encode()
		if encodeErr != nil {
			err = encodeErr
		}
		return encoded
	}
	uploads := make([]storage.Upload, len(page.Uploads))
	for i, upload := range page.Uploads {
		upload.ID = named(upload.ID)
		uploads[i] = upload
	}
	page.Uploads = uploads
	if page.NextID != "" {
		page.NextID = named(page.NextID)
	}
	return page, err
}

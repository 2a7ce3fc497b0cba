package s3

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// uploadsPage is a page of ListMultipartUploads.
type uploadsPage struct {
	EncodingType  string
	IsTruncated   bool
	NextKeyMarker string
	// NextUploadIdMarker is used only where more uploads of one key run than
	// a page holds: some servers refuse it.
	NextUploadIdMarker string
	Upload             []struct {
		Key, UploadId string
		Initiated     time.Time
	}
	CommonPrefixes []struct{ Prefix string }
}

// maxUploadPages bounds what one page of ours may cost. A page of the store's
// adds to ours but for reserved keys and prefixes that are told again.
const maxUploadPages = 1000

// ListUploads implements storage.Multipart.
func (s *Storage) ListUploads(ctx context.Context, opts storage.ListUploadsOptions) (storage.UploadPage, error) {
	var uploads []storage.Upload
	var prefixes []string
	if opts.AfterID != "" && strings.HasPrefix(opts.AfterKey, opts.Prefix) {
		var err error
		if uploads, err = s.uploadsOf(ctx, opts.AfterKey); err != nil {
			return storage.UploadPage{}, err
		}
	}
	marker := ""
	if opts.AfterKey != "" {
		marker = s.target.prefix + opts.AfterKey
	}
	for range maxUploadPages {
		p, err := s.uploadsPage(ctx, s.target.prefix+opts.Prefix, opts.Delimiter, marker, "")
		if err != nil {
			return storage.UploadPage{}, err
		}
		for _, u := range p.Upload {
			uploads = append(uploads, s.uploadOf(u.Key, u.UploadId, u.Initiated))
		}
		for _, c := range p.CommonPrefixes {
			prefixes = append(prefixes, strings.TrimPrefix(c.Prefix, s.target.prefix))
		}
		ended := !p.IsTruncated || p.NextKeyMarker <= marker
		if !ended && len(p.Upload) > 0 && p.Upload[len(p.Upload)-1].Key == p.NextKeyMarker {
			// The page may end in the midst of a key's uploads.
			key := strings.TrimPrefix(p.NextKeyMarker, s.target.prefix)
			all, err := s.uploadsOf(ctx, key)
			if err != nil {
				return storage.UploadPage{}, err
			}
			uploads = append(slices.DeleteFunc(uploads, func(u storage.Upload) bool { return u.Key == key }), all...)
		}
		page := storage.PageUploads(uploads, prefixes, opts)
		if ended || page.NextKey != "" {
			return page, nil
		}
		marker = p.NextKeyMarker
	}
	return storage.UploadPage{}, storage.Errorf(storage.CodeUnavailable, "ListUploads", "the store's listing did not come to an end within %d pages", maxUploadPages)
}

func (s *Storage) uploadOf(key, id string, initiated time.Time) storage.Upload {
	return storage.Upload{Key: strings.TrimPrefix(key, s.target.prefix), ID: id, Initiated: initiated.UTC()}
}

// uploadsOf returns all uploads of key, which come first among those whose keys
// begin with it.
func (s *Storage) uploadsOf(ctx context.Context, key string) (uploads []storage.Upload, err error) {
	name, id := s.target.prefix+key, ""
	for range maxUploadPages {
		marker := ""
		if id != "" {
			marker = name
		}
		p, err := s.uploadsPage(ctx, name, "", marker, id)
		if err != nil {
			return nil, err
		}
		for _, u := range p.Upload {
			if u.Key != name {
				return uploads, nil
			}
			uploads = append(uploads, s.uploadOf(u.Key, u.UploadId, u.Initiated))
		}
		if !p.IsTruncated || p.NextKeyMarker != name || p.NextUploadIdMarker == "" || p.NextUploadIdMarker == id {
			return uploads, nil
		}
		id = p.NextUploadIdMarker
	}
	return uploads, nil
}

func (s *Storage) uploadsPage(ctx context.Context, prefix, delimiter, keyMarker, idMarker string) (*uploadsPage, error) {
	q := make(query, 0, 7)
	add := func(name, value string) {
		if value != "" {
			q = append(q, [2]string{name, value})
		}
	}
	add("delimiter", delimiter)
	add("encoding-type", "url")
	add("key-marker", keyMarker)
	add("max-uploads", strconv.Itoa(storage.MaxListLimit))
	add("prefix", prefix)
	add("upload-id-marker", idMarker)
	q = append(q, [2]string{"uploads", ""})
	var p uploadsPage
	if err := s.getXML(ctx, "ListUploads", "", q, &p); err != nil {
		return nil, err
	}
	if err := p.decode(); err != nil {
		return nil, storage.Errorf(storage.CodeUnavailable, "ListUploads", "decoding the store's listing").WithCause(err)
	}
	return &p, nil
}

// decode undoes the encoding of keys, if the store did as it was asked.
func (p *uploadsPage) decode() (err error) {
	if p.EncodingType != "url" {
		return nil
	}
	if p.NextKeyMarker, err = url.QueryUnescape(p.NextKeyMarker); err != nil {
		return err
	}
	for i := range p.Upload {
		if p.Upload[i].Key, err = url.QueryUnescape(p.Upload[i].Key); err != nil {
			return err
		}
	}
	for i := range p.CommonPrefixes {
		if p.CommonPrefixes[i].Prefix, err = url.QueryUnescape(p.CommonPrefixes[i].Prefix); err != nil {
			return err
		}
	}
	return nil
}

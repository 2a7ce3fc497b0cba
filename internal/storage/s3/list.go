package s3

import (
	"context"
	"encoding/xml"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// maxListBody bounds what is read of one page: a thousand keys of 1,024 bytes,
// each of them escaped, with all that comes with a key.
const maxListBody = 16 << 20

// page is a page of ListObjectsV2.
type page struct {
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string
	Contents              []listed
	CommonPrefixes        []string
}

type listed struct {
	Key          string
	LastModified time.Time
	ETag         string
	Size         int64
}

// UnmarshalXML implements xml.Unmarshaler. By reflection a thousand keys take
// three times as long.
func (p *page) UnmarshalXML(d *xml.Decoder, _ xml.StartElement) error {
	var path [2]string // the element, and that in it
	var text []byte
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth < len(path) {
				path[depth] = t.Name.Local
			}
			if depth == 0 && t.Name.Local == "Contents" {
				p.Contents = append(p.Contents, listed{})
			}
			depth++
			text = text[:0]
		case xml.CharData:
			text = append(text, t...)
		case xml.EndElement:
			if depth == 0 {
				return nil
			}
			switch depth {
			case 1:
				err = p.set(path[0], string(text))
			case 2:
				err = p.setIn(path[0], path[1], string(text))
			}
			if err != nil {
				return fmt.Errorf("%s: %w", t.Name.Local, err)
			}
			depth--
			text = text[:0]
		}
	}
}

// set sets what the element name says.
func (p *page) set(name, text string) (err error) {
	switch name {
	case "EncodingType":
		p.EncodingType = text
	case "IsTruncated":
		p.IsTruncated, err = strconv.ParseBool(strings.TrimSpace(text))
	case "NextContinuationToken":
		p.NextContinuationToken = text
	}
	return err
}

// setIn sets what the element name in the element parent says.
func (p *page) setIn(parent, name, text string) (err error) {
	if parent == "CommonPrefixes" && name == "Prefix" {
		p.CommonPrefixes = append(p.CommonPrefixes, text)
	}
	if parent != "Contents" {
		return nil
	}
	o := &p.Contents[len(p.Contents)-1]
	switch name {
	case "Key":
		o.Key = text
	case "LastModified":
		o.LastModified, err = time.Parse(time.RFC3339, strings.TrimSpace(text))
	case "ETag":
		o.ETag = text
	case "Size":
		o.Size, err = strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	}
	return err
}

// List implements storage.Storage.
func (s *Storage) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	pager := storage.NewPager(opts)
	token := ""
	for {
		if _, done := pager.From(); done {
			return pager.Page(), nil
		}
		p, err := s.page(ctx, opts, token, pager.Room())
		if err != nil {
			return storage.ListPage{}, err
		}
		if !s.offer(pager, p) {
			return pager.Page(), nil
		}
		switch {
		case !p.IsTruncated || p.NextContinuationToken == "":
			return pager.Page(), nil
		case pager.Room() == 0:
			return pager.More(), nil
		}
		token = p.NextContinuationToken
	}
}

// offer gives pager the entries of p in byte order. It reports whether more
// may follow.
func (s *Storage) offer(pager *storage.Pager, p *page) bool {
	objects, prefixes := p.Contents, p.CommonPrefixes
	for len(objects)+len(prefixes) > 0 {
		if len(prefixes) == 0 || len(objects) > 0 && objects[0].Key < prefixes[0] {
			o := objects[0]
			objects = objects[1:]
			key := strings.TrimPrefix(o.Key, s.target.prefix)
			if key == "" {
				continue // an object named like the prefix is not ours
			}
			if !pager.Add(storage.Info{Key: key, Size: o.Size, ModTime: o.LastModified.UTC(), ETag: wire.Unquote(o.ETag)}) {
				return false
			}
			continue
		}
		prefix := strings.TrimPrefix(prefixes[0], s.target.prefix)
		prefixes = prefixes[1:]
		if prefix != "" && !pager.AddPrefix(prefix) {
			return false
		}
	}
	return true
}

// page asks for up to room entries, after token or else after opts.After.
func (s *Storage) page(ctx context.Context, opts storage.ListOptions, token string, room int) (*page, error) {
	const op = "List"
	q := make(query, 0, 7)
	add := func(name, value string) {
		if value != "" {
			q = append(q, [2]string{name, value})
		}
	}
	add("continuation-token", token)
	add("delimiter", opts.Delimiter)
	add("encoding-type", "url")
	add("list-type", "2")
	add("max-keys", strconv.Itoa(min(room+1, storage.MaxListLimit)))
	add("prefix", s.target.prefix+opts.Prefix)
	if token == "" && opts.After != "" && opts.After >= opts.Prefix {
		add("start-after", s.target.prefix+opts.After)
	}
	var p page
	if err := s.getXML(ctx, op, "", q, &p); err != nil {
		return nil, err
	}
	if err := p.decode(); err != nil {
		return nil, storage.Errorf(storage.CodeUnavailable, op, "decoding the store's listing").WithCause(err)
	}
	return &p, nil
}

// decode undoes the encoding of keys, if the store did as it was asked.
func (p *page) decode() (err error) {
	if p.EncodingType != "url" {
		return nil
	}
	for i := range p.Contents {
		if p.Contents[i].Key, err = url.QueryUnescape(p.Contents[i].Key); err != nil {
			return err
		}
	}
	for i := range p.CommonPrefixes {
		if p.CommonPrefixes[i], err = url.QueryUnescape(p.CommonPrefixes[i]); err != nil {
			return err
		}
	}
	return nil
}

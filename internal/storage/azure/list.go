package azure

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// maxResults is the most that the service gives at once.
const maxResults = 5000

// entry is a blob of a listing, or a common prefix.
type entry struct {
	key    string
	prefix bool
	info   storage.Info
}

// List implements storage.Storage. The service goes on only after where it has
// stopped itself, so that a page begins at the latest such place that lies
// before it.
func (s *Storage) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	pager := storage.NewPager(opts)
	if _, done := pager.From(); done {
		return storage.ListPage{}, nil
	}
	at := listing{prefix: opts.Prefix, delimiter: opts.Delimiter}
	marker, passed := s.markers.before(at, opts.After)
	for {
		// What is passed over without a place to begin at is many.
		limit := pager.Room() + 1
		if passed < opts.After && len(pager.Page().Objects)+len(pager.Page().Prefixes) == 0 {
			limit = maxResults
		}
		entries, next, err := s.page(ctx, opts, marker, int32(limit))
		if err != nil {
			return storage.ListPage{}, err
		}
		for _, e := range entries {
			more := false
			if e.prefix {
				more = pager.AddPrefix(e.key)
			} else {
				more = pager.Add(e.info)
			}
			if !more {
				return pager.Page(), nil
			}
			passed = e.key
		}
		if next == "" {
			return pager.Page(), nil
		}
		marker = next
		if len(entries) > 0 {
			s.markers.keep(at, passed, marker)
		}
		if pager.Room() == 0 {
			return pager.More(), nil
		}
	}
}

func (s *Storage) page(ctx context.Context, opts storage.ListOptions, marker string, limit int32) ([]entry, string, error) {
	const op = "List"
	prefix := value(s.prefix + opts.Prefix)
	var entries []entry
	var next *string
	if len(opts.Delimiter) != 1 { // of a longer one, servers have different notions
		got, err := s.client.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
			Prefix: prefix, Marker: value(marker), MaxResults: &limit, ResponseFormat: container.StorageResponseFormatXML,
		}).NextPage(ctx)
		if err != nil {
			return nil, "", s.failed(ctx, op, "", err, nil)
		}
		for _, item := range got.Segment.BlobItems {
			entries = append(entries, s.entryOf(item))
		}
		next = got.NextMarker
	} else {
		got, err := s.client.NewListBlobsHierarchyPager(opts.Delimiter, &container.ListBlobsHierarchyOptions{
			Prefix: prefix, Marker: value(marker), MaxResults: &limit, ResponseFormat: container.StorageResponseFormatXML,
		}).NextPage(ctx)
		if err != nil {
			return nil, "", s.failed(ctx, op, "", err, nil)
		}
		entries = s.merged(got.Segment)
		next = got.NextMarker
	}
	if next == nil {
		return entries, "", nil
	}
	return entries, *next, nil
}

// merged puts blobs and common prefixes, which come apart, in one order.
func (s *Storage) merged(segment *container.BlobHierarchyListSegment) []entry {
	var entries []entry
	items, prefixes := segment.BlobItems, segment.BlobPrefixes
	for len(items) > 0 || len(prefixes) > 0 {
		if len(prefixes) == 0 || len(items) > 0 && *items[0].Name < *prefixes[0].Name {
			entries = append(entries, s.entryOf(items[0]))
			items = items[1:]
			continue
		}
		entries = append(entries, entry{key: strings.TrimPrefix(*prefixes[0].Name, s.prefix), prefix: true})
		prefixes = prefixes[1:]
	}
	return entries
}

func (s *Storage) entryOf(item *container.BlobItem) entry {
	key := strings.TrimPrefix(*item.Name, s.prefix)
	info := storage.Info{Key: key}
	if p := item.Properties; p != nil {
		if p.ContentLength != nil {
			info.Size = *p.ContentLength
		}
		if p.LastModified != nil {
			info.ModTime = p.LastModified.UTC()
		}
		if p.ETag != nil {
			info.ETag = wire.Unquote(string(*p.ETag))
		}
		if p.ContentType != nil {
			info.Headers.ContentType = *p.ContentType
		}
	}
	return entry{key: key, info: info}
}

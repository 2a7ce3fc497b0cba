package swift

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// maxListBody bounds what is read of one page.
const maxListBody = 64 << 20

// listed is an object of a listing, or a common prefix.
type listed struct {
	Name         string `json:"name"`
	Bytes        int64  `json:"bytes"`
	Hash         string `json:"hash"`
	LastModified string `json:"last_modified"`
	ContentType  string `json:"content_type"`
	Subdir       string `json:"subdir"`
}

// List implements storage.Storage.
func (s *Storage) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	pager := storage.NewPager(opts)
	marker := markerAfter(opts, opts.After)
	for {
		// One more than fits says whether there is a page after this.
		limit := pager.Room() + 1
		page, err := s.page(ctx, opts, marker, limit)
		if err != nil {
			return storage.ListPage{}, err
		}
		for _, e := range page {
			var more bool
			switch {
			case e.Subdir != "":
				prefix, ok := strings.CutPrefix(e.Subdir, s.prefix)
				more = !ok || pager.AddPrefix(prefix)
				marker = markerAfter(opts, prefix)
			default:
				key, ok := strings.CutPrefix(e.Name, s.prefix)
				more = !ok || pager.Add(infoOfListed(key, e))
				marker = markerAfter(opts, key)
			}
			if !more {
				return pager.Page(), nil
			}
		}
		if len(page) < limit {
			return pager.Page(), nil
		}
	}
}

// markerAfter is after what a page goes on whose last entry is last: after all
// that a common prefix stands for.
func markerAfter(opts storage.ListOptions, last string) string {
	if strings.HasPrefix(last, opts.Prefix) {
		if folded := opts.Fold(last); folded != "" {
			return folded + "\U0010ffff"
		}
	}
	return last
}

func (s *Storage) page(ctx context.Context, opts storage.ListOptions, marker string, limit int) ([]listed, error) {
	const op = "List"
	query := url.Values{"format": {"json"}, "limit": {strconv.Itoa(limit)}}
	if prefix := s.prefix + opts.Prefix; prefix != "" {
		query.Set("prefix", prefix)
	}
	if opts.Delimiter != "" {
		query.Set("delimiter", opts.Delimiter)
	}
	if marker != "" {
		query.Set("marker", s.prefix+marker)
	}
	resp, err := s.send(ctx, &request{op: op, method: http.MethodGet, query: query})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil, nil
	}
	var page []listed
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxListBody)).Decode(&page); err != nil {
		return nil, wire.Unanswered(ctx, op, "", err, false)
	}
	wire.Drain(resp)
	return page, nil
}

func infoOfListed(key string, e listed) storage.Info {
	modified, _ := time.Parse("2006-01-02T15:04:05.999999999", e.LastModified)
	return storage.Info{
		Key: key, Size: e.Bytes, ETag: e.Hash, ModTime: modified.UTC(),
		Headers: storage.Headers{ContentType: e.ContentType},
	}
}

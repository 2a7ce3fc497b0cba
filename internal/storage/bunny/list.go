package bunny

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/tree"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// maxListBody bounds what is read of the listing of one folder.
const maxListBody = 256 << 20

// listed is an element of the listing of a folder. Times have no zone and are
// of UTC.
type listed struct {
	ObjectName  string
	Length      int64
	LastChanged string
	IsDirectory bool
	Checksum    string
	ContentType string
}

// List implements storage.Storage.
func (s *Storage) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	if ctx.Err() != nil {
		return storage.ListPage{}, storage.Interrupted(ctx, "List", "beginning")
	}
	return tree.List(ctx, opts, s.folder)
}

func (s *Storage) folder(ctx context.Context, folder string) ([]tree.Entry, error) {
	const op = "List"
	resp, err := s.send(ctx, &request{op: op, method: http.MethodGet, path: folder, header: http.Header{"Accept": {"application/json"}}})
	if storage.CodeOf(err) == storage.CodeKeyNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var found []listed
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxListBody)).Decode(&found); err != nil {
		return nil, wire.Unanswered(ctx, op, folder, err, false)
	}
	wire.Drain(resp)
	entries := make([]tree.Entry, 0, len(found))
	for _, f := range found {
		if f.ObjectName == "" {
			continue
		}
		e := tree.Entry{Info: storage.Info{Key: folder + f.ObjectName}, Folder: f.IsDirectory}
		if f.IsDirectory {
			e.Info.Key += "/"
		} else {
			e.Info.Size = f.Length
			e.Info.ModTime = timeOf(f.LastChanged)
			e.Info.Headers.ContentType = f.ContentType
			if sum, err := hex.DecodeString(f.Checksum); err == nil && len(sum) == 32 {
				e.Info.Checksums.SHA256 = sum
			}
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func timeOf(text string) time.Time {
	for _, layout := range []string{"2006-01-02T15:04:05.999999999", time.RFC3339Nano} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

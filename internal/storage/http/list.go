package http

import (
	"context"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/tree"
)

// List implements storage.Storage.
func (s *Storage) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	const op = "List"
	if err := s.writable(op); err != nil {
		return storage.ListPage{}, err
	}
	if ctx.Err() != nil {
		return storage.ListPage{}, storage.Interrupted(ctx, op, "beginning")
	}
	return tree.List(ctx, opts, func(ctx context.Context, folder string) ([]tree.Entry, error) {
		found, err := s.propfind(ctx, op, folder, "1")
		if storage.CodeOf(err) == storage.CodeKeyNotFound {
			return nil, nil // removed meanwhile, or a prefix that is no folder
		}
		if err != nil {
			return nil, err
		}
		var children []tree.Entry
		for _, e := range found {
			if key := e.info.Key; parentOf(key) == folder && key != folder && key != "" {
				children = append(children, tree.Entry{Info: e.info, Folder: e.folder})
			}
		}
		return children, nil
	})
}

package http

import (
	"context"
	"strings"

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
		if storage.CodeOf(err) == storage.CodeAccessDenied && s.isFile(ctx, op, strings.TrimSuffix(folder, "/")) {
			return nil, nil // which some servers call forbidden
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

// isFile reports whether key is known to be a file.
func (s *Storage) isFile(ctx context.Context, op, key string) bool {
	if key == "" {
		return false
	}
	found, err := s.propfind(ctx, op, key, "0")
	return err == nil && len(found) > 0 && !found[0].folder
}

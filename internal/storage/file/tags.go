package file

import (
	"context"
	"os"

	"github.com/suaveplan/storagemux/internal/storage"
)

// GetTags implements storage.Tagger.
func (s *Storage) GetTags(ctx context.Context, key string) (tags map[string]string, err error) {
	err = s.tagged(ctx, "GetTags", key, func(f *os.File) error {
		_, tags, err = describeTagged(key, f, true)
		return err
	})
	return tags, err
}

// SetTags implements storage.Tagger. Only the record of the object changes.
func (s *Storage) SetTags(ctx context.Context, key string, tags map[string]string) error {
	const op = "SetTags"
	root, _, err := s.begin(ctx, op, key)
	if err != nil {
		return err
	}
	if err := s.volume.verify(root); err != nil {
		return s.unavailable(op, err)
	}
	// Nobody replaces the object while its record is read and written.
	release, err := s.volume.exclude(root, true)
	if err != nil {
		return wrap(err, op, "locking the folder %s", s.volume.path)
	}
	defer release()
	return s.tagged(ctx, op, key, func(f *os.File) error {
		info, err := describe(key, f, true)
		if err == nil {
			err = writeRecord(f, info, tags)
		}
		if err == nil {
			err = f.Sync()
		}
		if tooLargeAttribute(err) {
			return storage.Errorf(storage.CodeTooLarge, op, "the tags of %q do not fit into an extended attribute", key).WithCause(err)
		}
		return wrap(err, op, "writing the tags of %q", key)
	})
}

// tagged opens the object under key for do.
func (s *Storage) tagged(ctx context.Context, op, key string, do func(*os.File) error) error {
	if !s.Capabilities().Tagging {
		return storage.Errorf(storage.CodeUnsupported, op, "the file system of %s has no extended attributes, and so there are no tags", s.volume.path)
	}
	f, _, err := s.find(ctx, op, key, storage.Conditions{})
	if err != nil {
		return err
	}
	defer f.Close()
	return do(f)
}

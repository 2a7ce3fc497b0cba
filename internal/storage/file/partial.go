package file

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"math"
	"os"

	"github.com/suaveplan/storagemux/internal/storage"
)

// copyStep is how much is copied between two looks at the context.
const copyStep = 32 << 20

// SetPartial implements storage.Storage. The object is copied and the copy
// changed and renamed, so that a reader never sees a mix; file systems that can
// share blocks between files make that cheap.
func (s *Storage) SetPartial(ctx context.Context, key string, offset int64, body storage.Body) (storage.Info, error) {
	const op = "SetPartial"
	root, attributes, err := s.begin(ctx, op, key)
	if err != nil {
		return storage.Info{}, err
	}
	if offset < 0 {
		return storage.Info{}, storage.Errorf(storage.CodeInvalidRange, op, "the offset %d is negative", offset)
	}
	part, err := s.receive(ctx, root, op, body)
	if err != nil {
		return storage.Info{}, err
	}
	defer part.discard()
	done, err := s.turn(ctx, key)
	if err != nil {
		return storage.Info{}, err
	}
	defer done()
	// Another process may replace the object while it is copied. Each round
	// that fails means that somebody else got on.
	for range 100 {
		var info storage.Info
		if info, err = s.patch(ctx, root, key, offset, part.file, attributes); !errors.Is(err, errChanged) {
			return info, wrap(err, op, "writing into %q", key)
		}
	}
	return storage.Info{}, err
}

// errChanged says that the object that was copied is not there any more.
var errChanged = storage.Errorf(storage.CodeUnavailable, "SetPartial", "others keep changing the object")

// receive stores body in a temporary file.
func (s *Storage) receive(ctx context.Context, root *os.Root, op string, body storage.Body) (*temporary, error) {
	r, err := storage.OpenBody(ctx, op, body, storage.Checksums{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	t, err := s.newTemporary(root, op)
	if err != nil {
		return nil, err
	}
	if _, err = copyBody(t.file, r); err != nil {
		t.discard()
		if r.Err() != nil {
			return nil, r.Err()
		}
		return nil, wrap(err, op, "receiving the body")
	}
	return t, nil
}

// patch makes one attempt.
func (s *Storage) patch(ctx context.Context, root *os.Root, key string, offset int64, part *os.File, attributes bool) (storage.Info, error) {
	const op = "SetPartial"
	length, err := part.Seek(0, io.SeekEnd)
	if err != nil {
		return storage.Info{}, err
	}
	if offset > math.MaxInt64-length {
		return storage.Info{}, storage.Errorf(storage.CodeTooLarge, op, "an object that ends at %d+%d is too large", offset, length)
	}
	l := locate(key)
	old, info, err := lookUp(root, l, key, attributes)
	if err != nil {
		return storage.Info{}, err
	}
	tmp, err := s.newTemporary(root, op)
	if err != nil {
		return storage.Info{}, err
	}
	defer tmp.discard()
	var before os.FileInfo
	var tags map[string]string
	if old != nil {
		defer old.Close()
		if _, tags, err = describeTagged(key, old, attributes); err != nil {
			return storage.Info{}, err
		}
		if before, err = old.Stat(); err != nil {
			return storage.Info{}, err
		}
		if err := copyAll(ctx, tmp.file, old); err != nil {
			return storage.Info{}, err
		}
	}
	if length > 0 {
		if _, err := part.Seek(0, io.SeekStart); err != nil {
			return storage.Info{}, err
		}
		if _, err := tmp.file.Seek(offset, io.SeekStart); err != nil {
			return storage.Info{}, err
		}
		if err := copyAll(ctx, tmp.file, part); err != nil {
			return storage.Info{}, err
		}
	}
	// The tag of a changed object is new but not made of its content, which
	// would have to be read once more for that.
	info.ETag, info.Checksums = "rnd-"+rand.Text(), storage.Checksums{}
	info.Metadata = maps.Clone(info.Metadata)
	delete(info.Metadata, storage.VersionMetadata)
	return tmp.commit(ctx, op, key, info, tags, attributes, true, func() error {
		now, _, err := lookUp(root, l, key, false)
		if err != nil {
			return err
		}
		if now == nil {
			if before != nil {
				return errChanged
			}
			return nil
		}
		defer now.Close()
		after, err := now.Stat()
		if err != nil {
			return err
		}
		if before == nil || !os.SameFile(before, after) || before.Size() != after.Size() || !before.ModTime().Equal(after.ModTime()) {
			return errChanged
		}
		if _, since, err := describeTagged(key, now, attributes); err != nil || !maps.Equal(since, tags) {
			return errors.Join(err, errChanged)
		}
		return nil
	})
}

// copyAll copies the rest of from, by the kernel where it can.
func copyAll(ctx context.Context, to, from *os.File) error {
	for {
		if ctx.Err() != nil {
			return storage.Interrupted(ctx, "SetPartial", "copying the object")
		}
		n, err := io.CopyN(to, from, copyStep)
		if err == io.EOF || err == nil && n < copyStep {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

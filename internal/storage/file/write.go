package file

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/suaveplan/storagemux/internal/storage"
)

// copyBuffers hold what writes have in memory.
var copyBuffers = sync.Pool{New: func() any { return new([128 << 10]byte) }}

// copyBody copies from r, which is a client's and not a file.
func copyBody(w io.Writer, r io.Reader) (int64, error) {
	buffer := copyBuffers.Get().(*[128 << 10]byte)
	defer copyBuffers.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, buffer[:])
}

// SetStream implements storage.Storage.
func (s *Storage) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	const op = "SetStream"
	root, attributes, err := s.begin(ctx, op, key)
	if err != nil {
		return storage.Info{}, err
	}
	l := locate(key)
	if !opts.Conditions.IsZero() {
		if !attributes {
			return storage.Info{}, storage.Errorf(storage.CodeUnsupported, op, "the file system of %s has no extended attributes, and so there are no conditional writes", s.volume.path)
		}
		if err := holds(root, l, key, opts.Conditions); err != nil {
			return storage.Info{}, wrap(err, op, "checking the conditions on %q", key) // spares the reading of the body; commit decides
		}
	}
	if !attributes {
		if err := storage.RefuseTags(op, opts.Tags); err != nil {
			return storage.Info{}, err
		}
	}
	r, err := storage.OpenBody(ctx, op, body, opts.Checksums)
	if err != nil {
		return storage.Info{}, err
	}
	defer r.Close()
	tmp, err := s.newTemporary(root, op)
	if err != nil {
		return storage.Info{}, err
	}
	defer tmp.discard()
	hash := xxhash.New()
	size, err := copyBody(io.MultiWriter(tmp.file, hash), r)
	if r.Err() != nil {
		return storage.Info{}, r.Err()
	}
	if err != nil {
		return storage.Info{}, wrap(err, op, "writing the content of %q", key)
	}
	info := storage.Info{
		ETag:    "xxh64-" + strconv.FormatUint(hash.Sum64(), 16) + "-" + strconv.FormatInt(size, 10),
		Headers: opts.Headers, Metadata: opts.Metadata, Checksums: opts.Checksums,
	}
	return tmp.commit(ctx, op, key, info, opts.Tags, attributes, !opts.Conditions.IsZero(), func() error {
		return holds(root, l, key, opts.Conditions)
	})
}

// holds checks the conditions of a write against what is at l.
func holds(root *os.Root, l location, key string, conditions storage.Conditions) error {
	if conditions.IsZero() {
		return nil
	}
	f, info, err := lookUp(root, l, key, true)
	if err != nil {
		return err
	}
	if f != nil {
		_ = f.Close()
	}
	return conditions.CheckWrite(f != nil, info)
}

// Delete implements storage.Storage.
func (s *Storage) Delete(ctx context.Context, key string) error {
	return s.delete(ctx, key, storage.Conditions{})
}

// DeleteIf implements storage.ConditionalDeleter.
func (s *Storage) DeleteIf(ctx context.Context, key string, conditions storage.Conditions) error {
	return s.delete(ctx, key, conditions)
}

func (s *Storage) delete(ctx context.Context, key string, conditions storage.Conditions) error {
	const op = "Delete"
	root, attributes, err := s.begin(ctx, op, key)
	if err != nil {
		return err
	}
	if !conditions.IsZero() && !attributes {
		return storage.Errorf(storage.CodeUnsupported, op, "the file system of %s has no extended attributes, and so there are no conditional deletes", s.volume.path)
	}
	if err := s.volume.verify(root); err != nil {
		return s.unavailable(op, err)
	}
	l := locate(key)
	removed, err := s.remove(root, l, !conditions.IsZero(), func() error { return holds(root, l, key, conditions) })
	if err != nil {
		return wrap(err, op, "deleting %q", key)
	}
	if !removed {
		return nil
	}
	if err := syncDir(root, l.dir); err != nil && !missing(err) {
		return wrap(err, op, "syncing the folder of %q", key)
	}
	if err := s.prune(root, l.dir); err != nil {
		return wrap(err, op, "removing the empty folders of %q", key)
	}
	return nil
}

// remove removes the object at l under both its names, the second one first:
// it would show again if only the plain one were gone. allowed may refuse; what it
// saw stays as it is if exclusive is set.
func (s *Storage) remove(root *os.Root, l location, exclusive bool, allowed func() error) (removed bool, err error) {
	release, err := s.volume.exclude(root, exclusive)
	if err != nil {
		return false, err
	}
	defer release()
	if err := allowed(); err != nil {
		return false, err
	}
	for _, name := range []string{l.alt(), l.plain()} {
		stat, err := root.Lstat(name)
		if missing(err) || tooLongName(err) || err == nil && stat.IsDir() {
			continue
		}
		if err == nil {
			err = root.Remove(name)
		}
		if err != nil && !missing(err) {
			return removed, err
		}
		removed = removed || err == nil
	}
	return removed, nil
}

// prune removes dir and the folders above it as far as they are empty.
func (s *Storage) prune(root *os.Root, dir string) error {
	for dir != "." && dir != reservedDir && dir != tmpDir && emptyDir(root, dir) {
		release, err := s.volume.exclude(root, true)
		if err != nil {
			return err
		}
		// Nobody renames anything now, so that what is a folder stays one.
		stat, err := root.Lstat(dir)
		if err == nil && stat.IsDir() {
			err = root.Remove(dir)
		}
		release()
		if err != nil {
			return nil // filled or removed by somebody else meanwhile
		}
		dir = path.Dir(dir)
	}
	return nil
}

// temporary is a file that may become an object. Its lock tells others that
// its writer lives.
type temporary struct {
	store *Storage
	root  *os.Root
	file  *os.File
	name  string
}

func (s *Storage) newTemporary(root *os.Root, op string) (*temporary, error) {
	if err := s.volume.verify(root); err != nil {
		return nil, s.unavailable(op, err)
	}
	name := path.Join(tmpDir, rand.Text())
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		if err = root.MkdirAll(tmpDir, 0o777); err == nil {
			f, err = root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		}
	}
	if err != nil {
		return nil, wrap(err, op, "making a temporary file in %s", s.volume.path)
	}
	t := &temporary{store: s, root: root, file: f, name: name}
	if err := lock(f, true); err != nil {
		t.discard()
		return nil, wrap(err, op, "locking a temporary file in %s", s.volume.path)
	}
	return t, nil
}

// discard removes the file unless it was committed.
func (t *temporary) discard() {
	if t.name != "" {
		_ = t.root.Remove(t.name)
	}
	_ = t.file.Close()
}

// commit makes the file the object under key, durably. exclusive says that
// allowed relies on what it sees; it is asked last.
func (t *temporary) commit(ctx context.Context, op, key string, info storage.Info, tags map[string]string, attributes, exclusive bool, allowed func() error) (storage.Info, error) {
	if attributes {
		if err := writeRecord(t.file, info, tags); err != nil {
			if tooLargeAttribute(err) {
				return storage.Info{}, storage.Errorf(storage.CodeTooLarge, op, "the headers, metadata and tags of %q do not fit into an extended attribute", key).WithCause(err)
			}
			return storage.Info{}, wrap(err, op, "writing the metadata of %q", key)
		}
	}
	if err := t.file.Sync(); err != nil {
		return storage.Info{}, wrap(err, op, "syncing the content of %q", key)
	}
	info, err := describe(key, t.file, attributes)
	if err != nil {
		return storage.Info{}, wrap(err, op, "reading back the metadata of %q", key)
	}
	if ctx.Err() != nil {
		return storage.Info{}, storage.Interrupted(ctx, op, "storing the object")
	}
	l := locate(key)
	top, err := t.rename(l, exclusive, allowed)
	if err != nil {
		return storage.Info{}, wrap(err, op, "storing %q", key)
	}
	if err := syncUp(t.root, l.dir, top); err != nil && !missing(err) {
		return storage.Info{}, wrap(err, op, "syncing the folder of %q", key)
	}
	return info, nil
}

// rename moves the file to l, making folders where they are missing. It
// returns the topmost folder in which a name was added.
func (t *temporary) rename(l location, exclusive bool, allowed func() error) (top string, err error) {
	top = l.dir
	// Others may remove a folder that was just made, as it is empty; each
	// round that fails means that somebody else got on.
	for range 100 {
		if err = t.renameOnce(l, exclusive, allowed); err == nil {
			t.name = ""
			return top, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !notFolder(err) {
			return top, err
		}
		if _, serr := t.root.Lstat(t.name); serr != nil {
			return top, errors.Join(errors.New("the temporary file is gone"), serr)
		}
		if existing := existingDir(t.root, l.dir); len(existing) < len(top) {
			top = existing
		}
		if err = t.makeDirs(l.dir); err != nil {
			return top, err
		}
	}
	return top, err
}

func (t *temporary) renameOnce(l location, exclusive bool, allowed func() error) error {
	release, err := t.store.volume.exclude(t.root, exclusive)
	if err != nil {
		return err
	}
	defer release()
	if err := allowed(); err != nil {
		return err
	}
	if _, err := t.root.Lstat(l.alt()); err == nil {
		return t.root.Rename(t.name, l.alt())
	}
	err = t.root.Rename(t.name, l.plain())
	if err != nil && isDirectory(err) {
		return t.root.Rename(t.name, l.alt())
	}
	return err
}

// existingDir returns dir or the nearest folder above it that exists.
func existingDir(root *os.Root, dir string) string {
	for dir != "." {
		if stat, err := root.Stat(dir); err == nil && stat.IsDir() {
			break
		}
		dir = path.Dir(dir)
	}
	return dir
}

// makeDirs makes dir. An object that stands in the way gets its second name.
func (t *temporary) makeDirs(dir string) error {
	if dir == "." {
		return nil
	}
	for range strings.Count(dir, "/") + 10 {
		err := t.root.MkdirAll(dir, 0o777)
		if err == nil || !notFolder(err) && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := t.moveAside(dir); err != nil {
			return err
		}
	}
	return storage.Errorf(storage.CodeUnavailable, "SetStream", "others keep writing where the folder %q belongs", dir)
}

// moveAside gives the topmost file on the path of dir its second name.
func (t *temporary) moveAside(dir string) error {
	release, err := t.store.volume.exclude(t.root, true)
	if err != nil {
		return err
	}
	defer release()
	names := strings.Split(dir, "/")
	for i := range names {
		l := location{path.Join(append([]string{"."}, names[:i]...)...), names[i]}
		stat, err := t.root.Lstat(l.plain())
		if missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat.Mode().IsRegular() {
			return t.root.Rename(l.plain(), l.alt())
		}
		if !stat.IsDir() && stat.Mode()&fs.ModeSymlink == 0 {
			return storage.Errorf(storage.CodeRejected, "SetStream", "%q is neither a file nor a folder", l.plain())
		}
	}
	return nil
}

package file

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Names below the root that are not objects.
const (
	reservedDir = ".storagemux"
	tmpDir      = reservedDir + "/tmp"
	lockFile    = reservedDir + "/lock"
)

// volume is the root folder. It is opened when it is first needed, and again
// when another folder has appeared in its place, so that a disk which is
// mounted late or anew needs no restart.
type volume struct {
	path        string
	noAttribute bool // for tests: behave as without extended attributes

	mu         sync.Mutex
	root       *os.Root
	stale      []*os.Root // replaced, maybe still in use
	attributes bool
	closed     bool

	order sync.RWMutex // see exclude
}

// open returns the root, and whether its file system has extended attributes.
func (v *volume) open() (*os.Root, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return nil, false, fs.ErrClosed
	}
	if v.root != nil {
		return v.root, v.attributes, nil
	}
	if err := os.Mkdir(v.path, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, false, err
	}
	root, err := os.OpenRoot(v.path)
	if err != nil {
		return nil, false, err
	}
	attributes, err := prepare(root)
	if err != nil && !readOnly(err) && !errors.Is(err, fs.ErrPermission) {
		_ = root.Close()
		return nil, false, err
	}
	v.root, v.attributes = root, attributes && !v.noAttribute
	return v.root, v.attributes, nil
}

// verify returns nil if the root that was opened is still what is at its path.
// Who writes asks this first, and who found nothing before saying so: a lost
// disk is no missing key.
func (v *volume) verify(root *os.Root) error {
	is, err := os.Stat(v.path)
	if err != nil {
		v.forget(root)
		return err
	}
	was, err := root.Stat(".")
	if err == nil && os.SameFile(is, was) {
		return nil
	}
	v.forget(root)
	return errors.New("the folder was replaced by another")
}

func (v *volume) forget(root *os.Root) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.root == root {
		v.stale = append(v.stale, root)
		v.root = nil
	}
}

func (v *volume) close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	var err error
	if v.root != nil {
		err = v.root.Close()
	}
	for _, root := range v.stale {
		err = errors.Join(err, root.Close())
	}
	v.root, v.stale = nil, nil
	return err
}

// prepare makes the folder for temporary files, removes those of writers that
// are gone, and finds out whether there are extended attributes.
func prepare(root *os.Root) (attributes bool, err error) {
	if err := root.MkdirAll(tmpDir, 0o777); err != nil {
		return false, err
	}
	f, err := root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return false, err
	}
	defer f.Close()
	switch err := setAttribute(f, []byte("{}")); {
	case err == nil:
		attributes = true
	case !errors.Is(err, errors.ErrUnsupported):
		return false, err
	}
	return attributes, sweep(root)
}

// sweep removes temporary files. Their writers hold a lock on them, which the
// kernel releases when a process dies.
func sweep(root *os.Root) error {
	dir, err := root.Open(tmpDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		name = path.Join(tmpDir, name)
		f, err := root.Open(name)
		if err != nil {
			continue // its writer renamed it just now
		}
		if tryLock(f) {
			_ = root.Remove(name)
		}
		_ = f.Close()
	}
	return nil
}

// exclude orders changes of names: plain writes and deletes share, whoever
// must rely on what it saw excludes them, in every process on this folder.
func (v *volume) exclude(root *os.Root, others bool) (release func(), err error) {
	unlock := v.order.RUnlock
	if others {
		v.order.Lock()
		unlock = v.order.Unlock
	} else {
		v.order.RLock()
	}
	f, err := root.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o666)
	if err == nil {
		if err = lock(f, others); err != nil {
			_ = f.Close()
		}
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return func() {
		_ = f.Close()
		unlock()
	}, nil
}

// syncDir makes the names in dir durable.
func syncDir(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// syncUp makes the names in dir and in the folders above it, up to top, durable.
func syncUp(root *os.Root, dir, top string) error {
	for {
		if err := syncDir(root, dir); err != nil && !missing(err) {
			return err
		}
		if dir == top || dir == "." {
			return nil
		}
		dir = path.Dir(dir)
	}
}

func emptyDir(root *os.Root, dir string) bool {
	f, err := root.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return err == io.EOF
}

func absolute(p string) (string, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", storage.Errorf(storage.CodeUnavailable, "New", "finding the folder %q", p).WithCause(err)
	}
	return abs, nil
}

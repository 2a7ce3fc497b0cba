package file

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"os"
	"sync"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/staged"
)

// Config says where a store is.
type Config struct {
	// Path is the root folder. It is made if the folder above it exists. It
	// need not be there yet when the store is made: until it is, every
	// operation is UNAVAILABLE.
	Path string
}

// Storage is a store over a folder.
type Storage struct {
	*staged.Uploads
	volume volume
	turns  [64]chan struct{} // one partial write per key at a time; keys share
	seed   maphash.Seed
}

var (
	_ storage.Storage   = (*Storage)(nil)
	_ storage.Multipart = (*Storage)(nil)
	_ storage.Checker   = (*Storage)(nil)
	_ storage.Tagger    = (*Storage)(nil)
	_ io.Closer         = (*Storage)(nil)
)

// New returns a store over cfg.Path. It opens the folder if it can, and else
// when it is used.
func New(cfg Config) (*Storage, error) {
	if cfg.Path == "" {
		return nil, storage.Errorf(storage.CodeUnavailable, "New", "the path of the folder is empty")
	}
	p, err := absolute(cfg.Path)
	if err != nil {
		return nil, err
	}
	s := newStorage(p)
	_, _, _ = s.volume.open()
	return s, nil
}

func newStorage(path string) *Storage {
	s := &Storage{volume: volume{path: path, attributes: true}, seed: maphash.MakeSeed()}
	for i := range s.turns {
		s.turns[i] = make(chan struct{}, 1)
	}
	s.Uploads = staged.New(s, nil)
	return s
}

// Close releases the folder. Objects that are being read stay readable.
func (s *Storage) Close() error { return s.volume.close() }

// Capabilities implements storage.Storage. Without extended attributes there
// are no metadata, tags and strong entity tags, hence no conditional write. Until the
// folder was first opened they are assumed.
//
// Identity is stored and not native: what somebody else put into the folder has
// only a weak tag, made of size and time.
func (s *Storage) Capabilities() storage.Capabilities {
	s.volume.mu.Lock()
	attributes := s.volume.attributes
	s.volume.mu.Unlock()
	c := storage.Capabilities{
		Range: true, PartialWrite: true, ListOrdered: true,
		Metadata: attributes, ConditionalWrite: attributes, Tagging: attributes, Identity: storage.IdentityWeak,
	}
	if attributes {
		c.Identity = storage.IdentityStored
	}
	return c
}

// Check implements storage.Checker: the folder is there and can be read.
func (s *Storage) Check(ctx context.Context) error {
	root, _, err := s.begin(ctx, "Check", storage.ProbeKey)
	if err != nil {
		return err
	}
	if err := s.volume.verify(root); err != nil {
		return s.unavailable("Check", err)
	}
	dir, err := root.Open(".")
	if err != nil {
		return wrap(err, "Check", "reading the folder %s", s.volume.path)
	}
	defer dir.Close()
	if _, err := dir.Readdirnames(1); err != nil && err != io.EOF {
		return wrap(err, "Check", "reading the folder %s", s.volume.path)
	}
	return nil
}

// GetStream implements storage.Storage.
func (s *Storage) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	f, info, err := s.find(ctx, "GetStream", key, opts.Conditions)
	if err != nil {
		return nil, err
	}
	offset, length := int64(0), info.Size
	if opts.Range != nil {
		if offset, length, err = opts.Range.Resolve(info.Size); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return &storage.Object{
		Info: info, Offset: offset, Length: length,
		Body: &body{ctx: ctx, file: f, offset: offset, rest: length},
	}, nil
}

// Stat implements storage.Storage.
func (s *Storage) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	f, info, err := s.find(ctx, "Stat", key, opts.Conditions)
	if err != nil {
		return storage.Info{}, err
	}
	_ = f.Close()
	return info, nil
}

// begin is what every operation on a key does first.
func (s *Storage) begin(ctx context.Context, op, key string) (root *os.Root, attributes bool, err error) {
	if ctx.Err() != nil {
		return nil, false, storage.Interrupted(ctx, op, "beginning")
	}
	if err := storage.ValidateKey(key); err != nil {
		return nil, false, err
	}
	root, attributes, err = s.volume.open()
	if err != nil {
		return nil, false, s.unavailable(op, err)
	}
	return root, attributes, nil
}

// unavailable is the error of a root that is not there. It is transient
// whatever the cause, since that is a matter of this member alone.
func (s *Storage) unavailable(op string, err error) error {
	return storage.Errorf(storage.CodeUnavailable, op, "opening the folder %s", s.volume.path).WithCause(err)
}

// find opens the object under key and checks conditions.
func (s *Storage) find(ctx context.Context, op, key string, conditions storage.Conditions) (*os.File, storage.Info, error) {
	root, attributes, err := s.begin(ctx, op, key)
	if err != nil {
		return nil, storage.Info{}, err
	}
	f, info, err := lookUp(root, locate(key), key, attributes)
	if err != nil {
		return nil, storage.Info{}, wrap(err, op, "opening %q", key)
	}
	if f == nil {
		if err := s.volume.verify(root); err != nil {
			return nil, storage.Info{}, s.unavailable(op, err)
		}
		return nil, storage.Info{}, storage.Errorf(storage.CodeKeyNotFound, op, "there is no object under %q", key)
	}
	if err := conditions.CheckRead(info); err != nil {
		_ = f.Close()
		return nil, storage.Info{}, err
	}
	return f, info, nil
}

// lookUp opens the object at l, or returns a nil file if there is none.
func lookUp(root *os.Root, l location, key string, attributes bool) (*os.File, storage.Info, error) {
	for _, name := range []string{l.plain(), l.alt()} {
		f, err := root.OpenFile(name, openFlags, 0)
		if missing(err) || tooLongName(err) {
			continue
		}
		if err != nil {
			return nil, storage.Info{}, err
		}
		if stat, err := f.Stat(); err != nil || !stat.Mode().IsRegular() {
			_ = f.Close()
			if err != nil {
				return nil, storage.Info{}, err
			}
			continue
		}
		info, err := describe(key, f, attributes)
		if err != nil {
			_ = f.Close()
			return nil, storage.Info{}, err
		}
		return f, info, nil
	}
	return nil, storage.Info{}, nil
}

// turn waits until no other partial write of key is under way here.
func (s *Storage) turn(ctx context.Context, key string) (done func(), err error) {
	turn := s.turns[maphash.String(s.seed, key)%uint64(len(s.turns))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, storage.Interrupted(ctx, "SetPartial", "waiting for another partial write")
	}
}

// body reads a part of an open file.
type body struct {
	ctx          context.Context
	file         *os.File
	offset, rest int64
	shut         sync.Once
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, storage.Interrupted(b.ctx, "GetStream", "reading the object")
	}
	if b.rest == 0 {
		return 0, io.EOF
	}
	n, err := b.file.ReadAt(p[:min(int64(len(p)), b.rest)], b.offset)
	b.offset += int64(n)
	b.rest -= int64(n)
	switch {
	case n > 0:
		return n, nil
	case err == io.EOF:
		return 0, storage.Errorf(storage.CodeUnavailable, "GetStream", "the file was cut while it was read").WithCause(io.ErrUnexpectedEOF)
	case errors.Is(err, os.ErrClosed):
		return 0, err
	default:
		return 0, wrap(err, "GetStream", "reading the object")
	}
}

// Close implements io.Closer.
func (b *body) Close() (err error) {
	b.shut.Do(func() { err = b.file.Close() })
	return err
}

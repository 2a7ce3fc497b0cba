package memory

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/staged"
)

// Storage is a handle on a set of objects in memory.
type Storage struct {
	*staged.Uploads
	objects *objects
}

var (
	_ storage.Storage   = (*Storage)(nil)
	_ storage.Multipart = (*Storage)(nil)
	_ storage.Tagger    = (*Storage)(nil)
	_ storage.Checker   = (*Storage)(nil)
)

// New returns a store that holds at most sizeLimit bytes, those of keys,
// metadata, unfinished writes and parts of uploads included; 0 means that there
// is no limit. An object that is overwritten counts until its successor is
// complete, and so do the parts that become one.
func New(sizeLimit int64) *Storage {
	return handle(&objects{limit: sizeLimit, byKey: map[string]*object{}})
}

// Handle returns another handle on the same objects.
func (s *Storage) Handle() *Storage { return handle(s.objects) }

func handle(o *objects) *Storage {
	s := &Storage{objects: o}
	s.Uploads = staged.New(s, nil)
	return s
}

// Resize changes the limit that New was given, for all handles. What is stored
// stays; where it is over the new limit, writes find no space.
func (s *Storage) Resize(sizeLimit int64) {
	s.objects.mu.Lock()
	defer s.objects.mu.Unlock()
	s.objects.limit = sizeLimit
}

// Capabilities implements storage.Storage.
func (s *Storage) Capabilities() storage.Capabilities {
	return storage.Capabilities{
		Range: true, PartialWrite: true, Metadata: true, ConditionalWrite: true,
		ListOrdered: true, Tagging: true, Identity: storage.IdentityNative,
	}
}

// Check implements storage.Checker.
func (s *Storage) Check(ctx context.Context) error {
	if ctx.Err() != nil {
		return storage.Interrupted(ctx, "Check", "checking the memory store")
	}
	return nil
}

// GetStream implements storage.Storage.
func (s *Storage) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	o, err := s.find(ctx, "GetStream", key, opts.Conditions)
	if err != nil {
		return nil, err
	}
	offset, length := int64(0), o.info.Size
	if opts.Range != nil {
		if offset, length, err = opts.Range.Resolve(o.info.Size); err != nil {
			return nil, err
		}
	}
	return &storage.Object{
		Info: o.info, Offset: offset, Length: length,
		Body: &body{ctx: ctx, rest: o.data[offset : offset+length]},
	}, nil
}

// Stat implements storage.Storage.
func (s *Storage) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	o, err := s.find(ctx, "Stat", key, opts.Conditions)
	if err != nil {
		return storage.Info{}, err
	}
	return o.info, nil
}

func (s *Storage) find(ctx context.Context, op, key string, conditions storage.Conditions) (*object, error) {
	if err := begin(ctx, op, key); err != nil {
		return nil, err
	}
	o := s.objects.get(key)
	if o == nil {
		return nil, storage.Errorf(storage.CodeKeyNotFound, op, "there is no object under %q", key)
	}
	return o, conditions.CheckRead(o.info)
}

// SetStream implements storage.Storage.
func (s *Storage) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	const op = "SetStream"
	if err := begin(ctx, op, key); err != nil {
		return storage.Info{}, err
	}
	if !opts.Conditions.IsZero() {
		if err := check(opts.Conditions, s.objects.get(key)); err != nil {
			return storage.Info{}, err // spares the reading of the body; put decides
		}
	}
	data, reserved, err := s.objects.readAll(ctx, op, body, opts.Checksums)
	if err != nil {
		return storage.Info{}, err
	}
	info := storage.Info{
		Key: key, Size: int64(len(data)), ETag: etag(data),
		Headers: opts.Headers, Metadata: cloned(opts.Metadata), Checksums: opts.Checksums,
	}
	return s.objects.put(reserved, info, cloned(opts.Tags), func(old *object) ([]byte, error) {
		return data, check(opts.Conditions, old)
	})
}

// SetPartial implements storage.Storage.
func (s *Storage) SetPartial(ctx context.Context, key string, offset int64, body storage.Body) (storage.Info, error) {
	const op = "SetPartial"
	if err := begin(ctx, op, key); err != nil {
		return storage.Info{}, err
	}
	if offset < 0 {
		return storage.Info{}, storage.Errorf(storage.CodeInvalidRange, op, "the offset %d is negative", offset)
	}
	part, reserved, err := s.objects.readAll(ctx, op, body, storage.Checksums{})
	if err != nil {
		return storage.Info{}, err
	}
	return s.objects.patch(reserved, key, offset, part)
}

// Delete implements storage.Storage.
func (s *Storage) Delete(ctx context.Context, key string) error {
	if err := begin(ctx, "Delete", key); err != nil {
		return err
	}
	return s.objects.remove(key, func(*object) error { return nil })
}

// DeleteIf implements storage.ConditionalDeleter.
func (s *Storage) DeleteIf(ctx context.Context, key string, conditions storage.Conditions) error {
	if err := begin(ctx, "Delete", key); err != nil {
		return err
	}
	return s.objects.remove(key, func(old *object) error {
		if old == nil {
			return storage.Errorf(storage.CodeKeyNotFound, "Delete", "no object %q", key)
		}
		return conditions.CheckWrite(true, old.info)
	})
}

// GetTags implements storage.Tagger.
func (s *Storage) GetTags(ctx context.Context, key string) (map[string]string, error) {
	o, err := s.find(ctx, "GetTags", key, storage.Conditions{})
	if err != nil {
		return nil, err
	}
	return cloned(o.tags), nil
}

// SetTags implements storage.Tagger.
func (s *Storage) SetTags(ctx context.Context, key string, tags map[string]string) error {
	const op = "SetTags"
	if err := begin(ctx, op, key); err != nil {
		return err
	}
	return s.objects.tag(op, key, cloned(tags))
}

// List implements storage.Storage.
func (s *Storage) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	if ctx.Err() != nil {
		return storage.ListPage{}, storage.Interrupted(ctx, "List", "listing")
	}
	return s.objects.list(opts), nil
}

// begin is what every operation on a key checks first.
func begin(ctx context.Context, op, key string) error {
	if ctx.Err() != nil {
		return storage.Interrupted(ctx, op, "beginning")
	}
	return storage.ValidateKey(key)
}

// check evaluates the conditions of a write over old, which may be nil.
func check(c storage.Conditions, old *object) error {
	if old == nil {
		return c.CheckWrite(false, storage.Info{})
	}
	return c.CheckWrite(true, old.info)
}

// etag depends on nothing but the content. It cannot be taken for an MD5.
func etag(data []byte) string {
	return "xxh64-" + strconv.FormatUint(xxhash.Sum64(data), 16) + "-" + strconv.Itoa(len(data))
}

func now() time.Time { return time.Now().UTC() }

func cloned(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	c := make(map[string]string, len(m))
	for k, v := range m {
		c[k] = v
	}
	return c
}

// keyIndex returns where key is, or belongs, in sorted keys.
func keyIndex(keys []string, key string) (int, bool) { return slices.BinarySearch(keys, key) }

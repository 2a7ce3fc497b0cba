package memory

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/suaveplan/storagemux/internal/storage"
)

// object is immutable once it is in the map; a write replaces it.
type object struct {
	info storage.Info
	data []byte
	tags map[string]string
	cost int64
}

// objects is a set of objects and its account: used counts the objects and
// what unfinished writes have reserved.
type objects struct {
	mu    sync.RWMutex
	limit int64
	used  int64
	byKey map[string]*object
	keys  []string // sorted
}

func (s *objects) get(key string) *object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byKey[key]
}

// reserve takes n bytes from the account, or gives them back if n < 0.
func (s *objects) reserve(op string, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reserveLocked(op, n)
}

func (s *objects) reserveLocked(op string, n int64) error {
	if n > 0 && s.limit > 0 && n > s.limit-s.used {
		return storage.Errorf(storage.CodeNoSpace, op, "%d more bytes do not fit: %d of %d are in use", n, s.used, s.limit)
	}
	s.used += n
	return nil
}

// readAll reads body into memory, reserving each piece before it is allocated.
// The caller gives reserved back or turns it into an object.
func (s *objects) readAll(ctx context.Context, op string, body storage.Body, sums storage.Checksums) (data []byte, reserved int64, err error) {
	r, err := storage.OpenBody(ctx, op, body, sums)
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	defer func() {
		if err != nil {
			_ = s.reserve(op, -reserved)
			data, reserved = nil, 0
		}
	}()
	known := body.Size() >= 0
	next := body.Size()
	if !known {
		next = 4 << 10
	}
	for {
		if len(data) == cap(data) && next > 0 {
			if err = s.reserve(op, next); err != nil {
				return
			}
			reserved += next
			data = append(make([]byte, 0, int64(cap(data))+next), data...)
			if next = int64(cap(data)); known {
				next = 0
			}
		}
		var spare [1]byte // where a whole body meets its end
		room := data[len(data):cap(data)]
		if len(room) == 0 {
			room = spare[:]
		}
		n, rerr := r.Read(room)
		data = data[:min(len(data)+n, cap(data))]
		if rerr == io.EOF {
			return data, reserved, nil
		}
		if rerr != nil {
			err = rerr
			return
		}
	}
}

// put makes info and the content that commit returns the object under
// info.Key. commit sees the object before, or nil, and may refuse.
func (s *objects) put(reserved int64, info storage.Info, tags map[string]string, commit func(old *object) ([]byte, error)) (storage.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := commit(s.byKey[info.Key])
	if err == nil {
		info.ModTime = now()
		err = s.replaceLocked("SetStream", reserved, &object{info: info, data: data, tags: tags})
	}
	if err != nil {
		s.used -= reserved
		return storage.Info{}, err
	}
	return s.byKey[info.Key].info, nil
}

// replaceLocked stores o and settles the account: reserved becomes what it
// costs, and the object before is given back.
func (s *objects) replaceLocked(op string, reserved int64, o *object) error {
	o.info.TagCount, o.cost = len(o.tags), cost(o)
	if err := s.reserveLocked(op, o.cost-reserved); err != nil {
		return err
	}
	key := o.info.Key
	if old := s.byKey[key]; old != nil {
		s.used -= old.cost
	} else {
		i, _ := keyIndex(s.keys, key)
		s.keys = slices.Insert(s.keys, i, key)
	}
	s.byKey[key] = o
	return nil
}

func cost(o *object) int64 {
	n := int64(cap(o.data)) + int64(len(o.info.Key))
	for _, texts := range []map[string]string{o.info.Metadata, o.tags} {
		for k, v := range texts {
			n += int64(len(k) + len(v))
		}
	}
	return n
}

// tag gives the object under key these tags.
func (s *objects) tag(op, key string, tags map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.byKey[key]
	if old == nil {
		return storage.Errorf(storage.CodeKeyNotFound, op, "there is no object under %q", key)
	}
	o := &object{info: old.info, data: old.data, tags: tags}
	o.info.TagCount, o.cost = len(tags), cost(o)
	if err := s.reserveLocked(op, o.cost-old.cost); err != nil {
		return err
	}
	s.byKey[key] = o
	return nil
}

// patch writes part over the object under key at offset.
func (s *objects) patch(reserved int64, key string, offset int64, part []byte) (storage.Info, error) {
	const op = "SetPartial"
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.used -= reserved }()
	info, before, tags := storage.Info{Key: key}, []byte(nil), map[string]string(nil)
	if old := s.byKey[key]; old != nil {
		info, before, tags = old.info, old.data, old.tags
	}
	size := int64(len(before))
	if len(part) > 0 {
		size = max(size, offset+int64(len(part)))
	}
	if size < 0 || s.limit > 0 && size > s.limit {
		return storage.Info{}, storage.Errorf(storage.CodeNoSpace, op, "an object that ends at %d+%d does not fit", offset, len(part))
	}
	if err := s.reserveLocked(op, size); err != nil {
		return storage.Info{}, err
	}
	data := make([]byte, size)
	copy(data, before)
	copy(data[min(offset, size):], part)
	info.Size, info.ETag, info.Checksums = size, etag(data), storage.Checksums{}
	info.Metadata = cloned(info.Metadata)
	delete(info.Metadata, storage.VersionMetadata)
	info.ModTime = now()
	if err := s.replaceLocked(op, size, &object{info: info, data: data, tags: tags}); err != nil {
		s.used -= size
		return storage.Info{}, err
	}
	return s.byKey[key].info, nil
}

// remove removes key unless allowed, which sees the object or nil, refuses.
func (s *objects) remove(key string, allowed func(old *object) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.byKey[key]
	if err := allowed(old); err != nil || old == nil {
		return err
	}
	s.used -= old.cost
	delete(s.byKey, key)
	i, _ := keyIndex(s.keys, key)
	s.keys = slices.Delete(s.keys, i, i+1)
	return nil
}

func (s *objects) list(opts storage.ListOptions) storage.ListPage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	pager := storage.NewPager(opts)
	for {
		from, done := pager.From()
		i, _ := keyIndex(s.keys, from)
		if done || i == len(s.keys) {
			return pager.Page()
		}
		// The keys that follow are offered as long as the next one is not
		// folded away; then it pays to search again.
		for ; i < len(s.keys); i++ {
			if next, done := pager.From(); done || s.keys[i] < next {
				break
			}
			if !pager.Add(s.byKey[s.keys[i]].info) {
				return pager.Page()
			}
		}
		if i == len(s.keys) {
			return pager.Page()
		}
	}
}

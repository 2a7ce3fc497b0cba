package storagetest

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// soon is how long an operation may take to notice that it is not wanted. It
// is there to tell at once from never, on a machine that is busy.
const soon = 15 * time.Second

// noise returns size bytes that look random and depend on seed only.
func noise(seed uint64, size int64) io.Reader {
	return io.LimitReader(rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}), size)
}

func noiseBytes(seed uint64, size int64) []byte {
	b, _ := io.ReadAll(noise(seed, size))
	return b
}

// set stores data under key and fails the check if that fails.
func (s *suite) set(key string, data []byte) storage.Info {
	s.Helper()
	return s.setWith(key, data, storage.SetOptions{})
}

func (s *suite) setWith(key string, data []byte, opts storage.SetOptions) storage.Info {
	s.Helper()
	info, err := storage.Set(s.ctx, s.store, key, data, opts)
	if err != nil {
		s.Fatalf("storing %q: %v", key, err)
	}
	return info
}

// want fails the check unless key holds exactly data.
func (s *suite) want(key string, data []byte) {
	s.Helper()
	got, info, err := storage.Get(s.ctx, s.store, key)
	if err != nil {
		s.Errorf("reading %q: %v", key, err)
		return
	}
	if !bytes.Equal(got, data) {
		s.Errorf("%q holds %s, want %s", key, describe(got), describe(data))
	}
	if info.Size != int64(len(data)) {
		s.Errorf("%q says it has %d bytes, want %d", key, info.Size, len(data))
	}
}

func describe(data []byte) string {
	if len(data) <= 40 {
		return string(append(append([]byte{'"'}, data...), '"'))
	}
	sum := sha256.Sum256(data)
	return string(data[:8]) + "... of SHA-256 " + string(hexOf(sum[:4]))
}

func hexOf(b []byte) []byte {
	const digits = "0123456789abcdef"
	var out []byte
	for _, c := range b {
		out = append(out, digits[c>>4], digits[c&15])
	}
	return out
}

// wantCode fails the check unless err has the given code.
func (s *suite) wantCode(err error, code storage.Code, doing string, args ...any) {
	s.Helper()
	if storage.CodeOf(err) != code {
		s.Errorf(doing+": got error %v, want %s", append(args, err, code)...)
	}
}

// readRange returns the part r of key.
func (s *suite) readRange(key string, r storage.Range) (*storage.Object, []byte, error) {
	obj, err := s.store.GetStream(s.ctx, key, storage.GetOptions{Range: &r})
	if err != nil {
		return nil, nil, err
	}
	defer obj.Body.Close()
	data, err := io.ReadAll(obj.Body)
	return obj, data, err
}

// list returns all entries of a listing in the order in which pages gave them,
// objects and prefixes of a page merged, and the number of pages.
func (s *suite) list(opts storage.ListOptions) (entries []string, pages int) {
	s.Helper()
	for {
		page, err := s.store.List(s.ctx, opts)
		if err != nil {
			s.Fatalf("listing %+v: %v", opts, err)
		}
		pages++
		var keys []string
		for _, o := range page.Objects {
			keys = append(keys, o.Key)
		}
		if !slices.IsSorted(keys) || !slices.IsSorted(page.Prefixes) {
			s.Errorf("listing %+v: a page is not in byte order: %q, %q", opts, keys, page.Prefixes)
		}
		if n := len(keys) + len(page.Prefixes); n > opts.PageLimit() {
			s.Errorf("listing %+v: a page has %d entries", opts, n)
		}
		merged := append(keys, page.Prefixes...)
		slices.Sort(merged)
		entries = append(entries, merged...)
		if page.Next == "" {
			return entries, pages
		}
		if page.Next <= opts.After || pages > 100_000 {
			s.Fatalf("listing %+v: the next page begins after %q, which is no progress", opts, page.Next)
		}
		opts.After = page.Next
	}
}

// fate is what the server makes of key.
func (s *suite) fate(key string) KeyFate {
	if s.Keys == nil {
		return Held
	}
	return s.Keys(key)
}

// wantNoDebris fails the check if a write left something behind.
func (s *suite) wantNoDebris(after string) {
	s.Helper()
	deadline := time.Now().Add(soon)
	for {
		left := s.reserved()
		if s.Debris != nil {
			left = append(left, s.Debris(s.T, s.store)...)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.Errorf("%s left behind: %q", after, left)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// reserved lists what the store keeps for writes and uploads, but for the records
// of uploads that were completed, which stay for a while.
func (s *suite) reserved() (keys []string) {
	s.Helper()
	for _, prefix := range []string{storage.ReservedParts, storage.ReservedTmp} {
		opts := storage.ListOptions{Prefix: prefix, Reserved: true}
		for more := true; more; more = opts.After != "" {
			page, err := s.store.List(s.ctx, opts)
			if err != nil {
				s.Fatalf("listing what is reserved: %v", err)
			}
			for _, o := range page.Objects {
				if !strings.HasPrefix(o.Key, storage.ReservedParts+"done/") {
					keys = append(keys, o.Key)
				}
			}
			opts.After = page.Next
		}
	}
	return keys
}

package storagetest

import (
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"

	"github.com/suaveplan/storagemux/internal/storage"
)

var partialChecks = []check{
	{name: "partial writes", needs: hasPartial, run: partialWrites, refusal: partialWritesAreRefused},
	{name: "partial writes side by side", needs: hasPartial, run: partialWritesSideBySide},
	{name: "cut partial writes change nothing", needs: hasPartial, run: cutPartialWrites},
}

func hasPartial(c storage.Capabilities) bool { return c.PartialWrite }

func partialWrites(s *suite) {
	zeros := strings.Repeat("\x00", 5)
	tests := []struct {
		name, before string
		offset       int64
		write, after string
	}{
		{"in the middle", "0123456789", 3, "abc", "012abc6789"},
		{"at the start", "0123456789", 0, "ab", "ab23456789"},
		{"at the end", "0123456789", 10, "ab", "0123456789ab"},
		{"over the end", "0123456789", 8, "abcd", "01234567abcd"},
		{"beyond the end", "0123456789", 15, "ab", "0123456789" + zeros + "ab"},
		{"of nothing", "0123456789", 4, "", "0123456789"},
		{"over everything", "0123", 0, "abcdef", "abcdef"},
		{"of an empty object", "", 5, "x", zeros + "x"},
	}
	for _, tt := range tests {
		written := s.setWith("key", []byte(tt.before), storage.SetOptions{})
		info, err := s.store.SetPartial(s.ctx, "key", tt.offset, storage.Bytes([]byte(tt.write)))
		if err != nil {
			s.Errorf("%s: %v", tt.name, err)
			continue
		}
		s.want("key", []byte(tt.after))
		if info.Size != int64(len(tt.after)) {
			s.Errorf("%s: returned the size %d, want %d", tt.name, info.Size, len(tt.after))
		}
		if tt.before != tt.after && written.ETag != "" && written.ETag == info.ETag {
			s.Errorf("%s: the content changed and the etag did not", tt.name)
		}
	}
	if _, err := s.store.SetPartial(s.ctx, "new/key", 5, storage.Stream(strings.NewReader("x"), -1)); err != nil {
		s.Errorf("of a missing object: %v", err)
	}
	s.want("new/key", []byte(zeros+"x"))

	metadata := map[string]string{"one": "1"}
	s.setWith("key", []byte("0123"), storage.SetOptions{Headers: storage.Headers{ContentType: "text/plain"}, Metadata: metadata})
	if _, err := s.store.SetPartial(s.ctx, "key", 1, storage.Bytes([]byte("x"))); err != nil {
		s.Errorf("of an object with metadata: %v", err)
	}
	stat, err := s.store.Stat(s.ctx, "key", storage.StatOptions{})
	if err != nil || s.store.Capabilities().Metadata && (stat.Headers.ContentType != "text/plain" || !maps.Equal(stat.Metadata, metadata)) {
		s.Errorf("after a partial write the headers are %+v, the metadata %v, error %v", stat.Headers, stat.Metadata, err)
	}
	_, err = s.store.SetPartial(s.ctx, "key", -1, storage.Bytes([]byte("x")))
	if storage.Classify(err) != storage.ClassSemantic {
		s.Errorf("at a negative offset: got %v, want a semantic error", err)
	}
	s.wantNoDebris("partial writes")
}

func partialWritesAreRefused(s *suite) {
	s.set("key", []byte("content"))
	_, err := s.store.SetPartial(s.ctx, "key", 1, storage.Bytes([]byte("x")))
	s.wantCode(err, storage.CodeUnsupported, "a partial write")
	s.want("key", []byte("content"))
}

func partialWritesSideBySide(s *suite) {
	const writers = 8
	s.set("key", []byte(strings.Repeat(".", writers)))
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			if _, err := s.store.SetPartial(s.ctx, "key", int64(i), storage.Bytes(fmt.Append(nil, i))); err != nil {
				s.Errorf("writer %d: %v", i, err)
			}
		})
	}
	all.Wait()
	s.want("key", []byte("01234567"))
}

func cutPartialWrites(s *suite) {
	s.set("key", []byte("0123456789"))
	for _, body := range []storage.Body{
		storage.Stream(strings.NewReader("ab"), 3),
		storage.Stream(strings.NewReader("abcd"), 3),
		storage.Stream(io.MultiReader(strings.NewReader("abc"), failing{}), 3),
		storage.Stream(io.MultiReader(strings.NewReader("abc"), failing{}), -1),
	} {
		_, err := s.store.SetPartial(s.ctx, "key", 2, body)
		s.wantCode(err, storage.CodeInvalidBody, "a cut partial write")
		s.want("key", []byte("0123456789"))
	}
	s.wantNoDebris("cut partial writes")
}

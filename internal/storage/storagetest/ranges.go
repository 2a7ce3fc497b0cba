package storagetest

import (
	"bytes"

	"github.com/suaveplan/storagemux/internal/storage"
)

var rangeChecks = []check{
	{name: "ranges", needs: hasRange, run: ranges, refusal: rangesAreRefused},
}

func hasRange(c storage.Capabilities) bool { return c.Range }

func ranges(s *suite) {
	data := noiseBytes(3, 200_001)
	size := int64(len(data))
	s.set("key", data)
	s.set("empty", nil)
	tests := []struct {
		r              storage.Range
		offset, length int64
	}{
		{storage.Range{First: 0, Last: 0}, 0, 1},
		{storage.Range{First: 0, Last: -1}, 0, size},
		{storage.Range{First: 1, Last: 2}, 1, 2},
		{storage.Range{First: 65_536, Last: 131_071}, 65_536, 65_536},
		{storage.Range{First: 100_000, Last: -1}, 100_000, size - 100_000},
		{storage.Range{First: size - 1, Last: -1}, size - 1, 1},
		{storage.Range{First: size - 1, Last: size + 100}, size - 1, 1},
		{storage.Range{First: 0, Last: size + 100}, 0, size},
		{storage.Range{First: -1}, size - 1, 1},
		{storage.Range{First: -70_000}, size - 70_000, 70_000},
		{storage.Range{First: -size}, 0, size},
		{storage.Range{First: -size - 100}, 0, size},
	}
	for _, tt := range tests {
		obj, got, err := s.readRange("key", tt.r)
		switch {
		case err != nil:
			s.Errorf("%s: %v", tt.r, err)
		case obj.Offset != tt.offset || obj.Length != tt.length || obj.Size != size:
			s.Errorf("%s: offset %d, length %d, size %d; want %d, %d, %d", tt.r, obj.Offset, obj.Length, obj.Size, tt.offset, tt.length, size)
		case !bytes.Equal(got, data[tt.offset:tt.offset+tt.length]):
			s.Errorf("%s: the bytes are not the object's", tt.r)
		}
	}
	for _, r := range []storage.Range{{First: size, Last: -1}, {First: size, Last: size + 1}, {First: 2 * size, Last: -1}} {
		_, _, err := s.readRange("key", r)
		s.wantCode(err, storage.CodeInvalidRange, "%s of %d bytes", r, size)
	}
	for _, r := range []storage.Range{{First: 0, Last: -1}, {First: 0, Last: 5}, {First: -5}} {
		_, _, err := s.readRange("empty", r)
		s.wantCode(err, storage.CodeInvalidRange, "%s of an empty object", r)
	}
}

func rangesAreRefused(s *suite) {
	s.set("key", []byte("content"))
	_, _, err := s.readRange("key", storage.Range{First: 1, Last: 2})
	s.wantCode(err, storage.CodeUnsupported, "a range")
}

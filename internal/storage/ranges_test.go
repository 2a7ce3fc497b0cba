package storage

import (
	"errors"
	"testing"
)

func TestRangeResolvesAsRFC9110Says(t *testing.T) {
	tests := []struct {
		first, last, size int64
		offset, length    int64
		header            string
		invalid           bool
	}{
		{0, -1, 10, 0, 10, "bytes=0-", false},
		{0, 0, 10, 0, 1, "bytes=0-0", false},
		{3, 5, 10, 3, 3, "bytes=3-5", false},
		{9, -1, 10, 9, 1, "bytes=9-", false},
		{3, 99, 10, 3, 7, "bytes=3-99", false},
		{-4, 0, 10, 6, 4, "bytes=-4", false},
		{-99, 0, 10, 0, 10, "bytes=-99", false},
		{10, -1, 10, 0, 0, "bytes=10-", true},
		{5, 3, 10, 0, 0, "bytes=5-3", true},
		{0, -1, 0, 0, 0, "bytes=0-", true},
		{-5, 0, 0, 0, 0, "bytes=-5", true},
	}
	for _, tt := range tests {
		r := Range{tt.first, tt.last}
		if r.String() != tt.header {
			t.Errorf("%+v is %q, want %q", r, r.String(), tt.header)
		}
		offset, length, err := r.Resolve(tt.size)
		if tt.invalid != errors.Is(err, ErrInvalidRange) || offset != tt.offset || length != tt.length {
			t.Errorf("%s of %d bytes = %d, %d, %v; want %d, %d, invalid %t", r, tt.size, offset, length, err, tt.offset, tt.length, tt.invalid)
		}
	}
}

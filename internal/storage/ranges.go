package storage

import "fmt"

// Range is a part of an object. First >= 0 is the first byte and Last the
// last one, inclusive; Last < 0 means up to the end. First < 0 asks for the
// last -First bytes, and Last is ignored.
type Range struct{ First, Last int64 }

// Resolve returns offset and length of r in an object of size bytes. A part
// that reaches beyond the end is cut there; one that begins beyond it, and any
// part of an empty object, is INVALID_RANGE.
func (r Range) Resolve(size int64) (offset, length int64, err error) {
	first, last := r.First, r.Last
	if first < 0 {
		first, last = max(0, size+first), size-1
	}
	if last < 0 || last >= size {
		last = size - 1
	}
	if first >= size || first > last {
		return 0, 0, Errorf(CodeInvalidRange, "GetStream", "range %s does not lie in an object of %d bytes", r, size)
	}
	return first, last - first + 1, nil
}

// String returns r as the value of an HTTP Range header.
func (r Range) String() string {
	switch {
	case r.First < 0:
		return fmt.Sprintf("bytes=%d", r.First)
	case r.Last < 0:
		return fmt.Sprintf("bytes=%d-", r.First)
	default:
		return fmt.Sprintf("bytes=%d-%d", r.First, r.Last)
	}
}

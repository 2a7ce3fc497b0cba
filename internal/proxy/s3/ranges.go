package s3

import (
	"strconv"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// parseRange reads a Range header. As S3 does, it takes one that it cannot
// read, and one with several parts, as absent: nil.
func parseRange(value string) *storage.Range {
	spec, ok := strings.CutPrefix(value, "bytes=")
	if !ok || strings.Contains(spec, ",") {
		return nil
	}
	first, last, ok := strings.Cut(strings.TrimSpace(spec), "-")
	if !ok {
		return nil
	}
	if first == "" {
		n, ok := parseOffset(last)
		if !ok {
			return nil
		}
		if n == 0 {
			// No object has a last zero bytes: a range that none satisfies.
			return &storage.Range{First: maxOffset, Last: -1}
		}
		return &storage.Range{First: -n}
	}
	from, ok := parseOffset(first)
	if !ok {
		return nil
	}
	if last == "" {
		return &storage.Range{First: from, Last: -1}
	}
	to, ok := parseOffset(last)
	if !ok || to < from {
		return nil
	}
	return &storage.Range{First: from, Last: to}
}

// maxOffset is beyond the end of every object.
const maxOffset = int64(1) << 62

// parseOffset reads digits; a number beyond maxOffset is cut there.
func parseOffset(digits string) (int64, bool) {
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return maxOffset, true
	}
	return min(n, maxOffset), true
}

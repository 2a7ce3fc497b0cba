package s3

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// patchObject overwrites a part of an object: PATCH with the header
// Content-Range: bytes first-last/*, whose length must be that of the body.
func patchObject(q *request) error {
	capabilities := q.cfg.Storage.Capabilities()
	if !capabilities.PartialWrite {
		return unsupportedWrite("The backends cannot overwrite a part of an object.")
	}
	for _, name := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since"} {
		if q.r.Header.Get(name) != "" {
			return notImplemented("Overwriting a part under a condition is not supported.")
		}
	}
	first, length, ok := parseContentRange(q.r.Header.Get("Content-Range"))
	if !ok {
		return invalidArgument("Content-Range must have the form bytes first-last/*.")
	}
	var info storage.Info
	err := q.store(func(ctx context.Context, body storage.Body, _ storage.Checksums) (err error) {
		if body.Size() != length {
			return refuse("IncompleteBody", http.StatusBadRequest, "The body does not have the length that Content-Range says.")
		}
		info, err = q.cfg.Storage.SetPartial(ctx, q.target.key, first, body)
		return err
	})
	if err != nil {
		return err
	}
	q.servedBy(info.ServedBy)
	q.stored(clientETag(info, capabilities.Identity))
	return nil
}

// parseContentRange reads "bytes first-last/size"; the size says nothing here.
func parseContentRange(value string) (first, length int64, ok bool) {
	spec, ok := strings.CutPrefix(value, "bytes ")
	if !ok {
		return 0, 0, false
	}
	spec, size, ok := strings.Cut(spec, "/")
	if _, known := parseOffset(size); !ok || size != "*" && !known {
		return 0, 0, false
	}
	from, to, ok := strings.Cut(spec, "-")
	if !ok {
		return 0, 0, false
	}
	first, firstErr := strconv.ParseInt(from, 10, 62)
	last, lastErr := strconv.ParseInt(to, 10, 62)
	if firstErr != nil || lastErr != nil || first < 0 || last < first {
		return 0, 0, false
	}
	return first, last - first + 1, true
}

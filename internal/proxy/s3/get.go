package s3

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/suaveplan/storagemux/internal/storage"
)

func getObject(q *request) error {
	if err := q.checkSelectors(); err != nil {
		return err
	}
	capabilities := q.cfg.Storage.Capabilities()
	var part *storage.Range
	if capabilities.Range {
		part = parseRange(q.r.Header.Get("Range"))
	}
	object, err := q.open(part, capabilities)
	if part != nil && q.rangeIsVoid(object, err, capabilities) {
		if object != nil {
			_ = object.Body.Close()
		}
		part = nil
		object, err = q.open(nil, capabilities)
	}
	if err != nil {
		return q.readError(err)
	}
	// What a close of a body that was read has to say comes too late.
	defer func() { _ = object.Body.Close() }()

	q.writeObjectHeaders(object.Info, capabilities)
	header := q.w.Header()
	header["Content-Length"] = []string{strconv.FormatInt(object.Length, 10)}
	status := http.StatusOK
	if part != nil {
		header["Content-Range"] = []string{contentRange(object.Offset, object.Length, object.Size)}
		status = http.StatusPartialContent
	} else {
		q.writeChecksums(object.Checksums)
	}
	q.begin(status)
	return q.copyOut(object)
}

func headObject(q *request) error {
	if err := q.checkSelectors(); err != nil {
		return err
	}
	capabilities := q.cfg.Storage.Capabilities()
	forStore, forFront := passConditions(parseConditions(q.r.Header, ""), capabilities.Identity)
	info, err := q.cfg.Storage.Stat(q.r.Context(), q.target.key, storage.StatOptions{Conditions: forStore})
	if err == nil {
		err = checkRead(forFront, info, capabilities.Identity)
	}
	if err != nil {
		return q.readError(err)
	}
	length, status := info.Size, http.StatusOK
	part := parseRange(q.r.Header.Get("Range"))
	if part != nil && capabilities.Range && ifRangeHolds(q.r.Header.Get("If-Range"), info, capabilities.Identity) {
		offset, n, err := part.Resolve(info.Size)
		if err != nil {
			return q.readError(err)
		}
		q.w.Header()["Content-Range"] = []string{contentRange(offset, n, info.Size)}
		length, status = n, http.StatusPartialContent
	} else {
		q.writeChecksums(info.Checksums)
	}
	q.writeObjectHeaders(info, capabilities)
	q.w.Header()["Content-Length"] = []string{strconv.FormatInt(length, 10)}
	q.begin(status)
	return nil
}

// open opens the object, or part of it, under the request's conditions.
func (q *request) open(part *storage.Range, capabilities storage.Capabilities) (*storage.Object, error) {
	forStore, forFront := passConditions(parseConditions(q.r.Header, ""), capabilities.Identity)
	object, err := q.cfg.Storage.GetStream(q.r.Context(), q.target.key, storage.GetOptions{Range: part, Conditions: forStore})
	if err != nil {
		return nil, err
	}
	if err := checkRead(forFront, object.Info, capabilities.Identity); err != nil {
		_ = object.Body.Close()
		return nil, err
	}
	return object, nil
}

// rangeIsVoid reports whether If-Range asks for the whole object after all:
// the one that was opened is not the one that the client has part of.
func (q *request) rangeIsVoid(object *storage.Object, err error, capabilities storage.Capabilities) bool {
	ifRange := q.r.Header.Get("If-Range")
	if ifRange == "" {
		return false
	}
	if err != nil {
		return errors.Is(err, storage.ErrInvalidRange)
	}
	return !ifRangeHolds(ifRange, object.Info, capabilities.Identity)
}

// ifRangeHolds compares the value of If-Range, a strong tag or a date.
func ifRangeHolds(value string, info storage.Info, identity storage.Identity) bool {
	switch {
	case value == "":
		return true
	case value[0] == '"':
		return value == quote(clientETag(info, identity))
	default:
		t := parseTime(value)
		return !t.IsZero() && info.ModTime.Unix() == t.Unix()
	}
}

// checkSelectors refuses versions and parts that no object here has.
func (q *request) checkSelectors() error {
	if version := q.query.Get("versionId"); version != "" && version != "null" {
		return refuse("NoSuchVersion", http.StatusNotFound, "The bucket keeps no versions.")
	}
	if part := q.query.Get("partNumber"); part != "" && part != "1" {
		return refuse("InvalidPartNumber", http.StatusRequestedRangeNotSatisfiable, "The object is stored as one part.")
	}
	return nil
}

// readError adds to the refusal of a read what its answer must carry.
func (q *request) readError(err error) error {
	e := toAPIError(err)
	switch e.StorageCode {
	case storage.CodeInvalidRange:
		// Best effort: whoever resumes a finished download learns the size.
		if info, err := q.cfg.Storage.Stat(q.r.Context(), q.target.key, storage.StatOptions{}); err == nil {
			e.Header = map[string]string{"Content-Range": "bytes */" + strconv.FormatInt(info.Size, 10)}
		}
	case storage.CodeNotModified:
		if tags := parseETags(q.r.Header.Get("If-None-Match")); len(tags) == 1 && tags[0] != "*" {
			e.Header = map[string]string{"ETag": quote(tags[0])}
		}
	}
	return e
}

// copyOut sends the content of an object.
func (q *request) copyOut(object *storage.Object) error {
	n, err := io.Copy(&clientWriter{client: q.client, w: q.w, left: object.Length}, object.Body)
	q.stats.BytesOut += n
	if err == nil && n != object.Length {
		err = io.ErrUnexpectedEOF
	}
	return err
}

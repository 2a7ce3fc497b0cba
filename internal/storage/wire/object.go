package wire

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Object returns resp, an answer of 200 or 206 to a GET of key in which asked
// was asked for, as an object with its Size, Offset, Length and Body, and closes
// it on error.
func Object(ctx context.Context, op, key string, asked *storage.Range, resp *http.Response) (*storage.Object, error) {
	obj, err := object(op, key, asked, resp)
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	obj.Key = key
	obj.Body = &body{ctx: ctx, key: key, source: resp.Body, rest: obj.Length}
	return obj, nil
}

func object(op, key string, asked *storage.Range, resp *http.Response) (*storage.Object, error) {
	size := resp.ContentLength
	if size < 0 {
		return nil, storage.Errorf(storage.CodeUnavailable, op, "the store gave no length for %q", key)
	}
	obj := &storage.Object{Length: size}
	switch {
	case asked != nil && resp.StatusCode == http.StatusPartialContent && beyond(*asked, resp.Header.Get("Content-Range")) != nil:
		// Some servers give a part of nothing.
		return nil, beyond(*asked, resp.Header.Get("Content-Range"))
	case resp.StatusCode == http.StatusPartialContent:
		first, last, total, ok := contentRange(resp.Header.Get("Content-Range"))
		if !ok || asked == nil || last-first+1 != size {
			return nil, storage.Errorf(storage.CodeUnavailable, op, "the store answered with %q, which is not what was asked for of %q", resp.Header.Get("Content-Range"), key)
		}
		obj.Offset, size = first, total
	case asked != nil:
		if _, _, err := asked.Resolve(size); err != nil {
			return nil, err
		}
		return nil, storage.Errorf(storage.CodeUnsupported, op, "the store ignored that %s of %q was asked for", asked, key)
	}
	obj.Size = size
	return obj, nil
}

// beyond returns INVALID_RANGE if asked does not lie in an object of the size
// that the header Content-Range ends with.
func beyond(asked storage.Range, value string) error {
	size, err := strconv.ParseInt(value[strings.LastIndexByte(value, '/')+1:], 10, 64)
	if err != nil {
		return nil
	}
	_, _, err = asked.Resolve(size)
	return err
}

// contentRange parses "bytes 5-9/20".
func contentRange(value string) (first, last, size int64, ok bool) {
	value, ok = strings.CutPrefix(value, "bytes ")
	part, total, ok2 := strings.Cut(value, "/")
	from, to, ok3 := strings.Cut(part, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, 0, false
	}
	var errs [3]error
	first, errs[0] = strconv.ParseInt(from, 10, 64)
	last, errs[1] = strconv.ParseInt(to, 10, 64)
	size, errs[2] = strconv.ParseInt(total, 10, 64)
	return first, last, size, errs == [3]error{} && first >= 0 && first <= last && last < size
}

// body is the content of an object that is read.
type body struct {
	ctx    context.Context
	key    string
	source io.ReadCloser
	rest   int64
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.source.Read(p)
	b.rest -= int64(n)
	switch {
	case err == nil:
		return n, nil
	case err == io.EOF && b.rest == 0:
		return n, io.EOF
	case b.ctx.Err() != nil:
		return n, storage.Interrupted(b.ctx, "GetStream", "reading the object")
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, storage.Errorf(storage.CodeUnavailable, "GetStream", "reading %q, with %d bytes to go", b.key, b.rest).WithCause(err)
}

// Close implements io.Closer.
func (b *body) Close() error {
	_ = b.source.Close()
	return nil
}

// Unquote returns the entity tag of a header in the contract's form: without
// quotes, but with W/ if it is weak.
func Unquote(etag string) string {
	if weak, is := strings.CutPrefix(etag, "W/"); is {
		return "W/" + Unquote(weak)
	}
	return strings.Trim(etag, `"`)
}

// Weak is Unquote for a server whose tags are not to be trusted: it marks each as
// weak.
func Weak(etag string) string {
	if etag = Unquote(etag); etag == "" || strings.HasPrefix(etag, "W/") {
		return etag
	}
	return "W/" + etag
}

// Quote is the inverse of Unquote.
func Quote(etag string) string {
	if etag == "*" {
		return etag
	}
	if weak, is := strings.CutPrefix(etag, "W/"); is {
		return "W/" + Quote(weak)
	}
	return `"` + etag + `"`
}

package s3

import (
	"context"
	"encoding/xml"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// span is the bytes from first up to, but without, end.
type span struct{ first, end int64 }

// split cuts s into as few pieces of about the same size as one copy of at most
// most bytes allows.
func (s span) split(most int64) []span {
	length := s.end - s.first
	n := (length + most - 1) / most
	pieces := make([]span, 0, n)
	for i := range n {
		pieces = append(pieces, span{s.first + length/n*i + min(i, length%n), s.first + length/n*(i+1) + min(i+1, length%n)})
	}
	return pieces
}

// CopyObject implements storage.Copier. It copies in parts where one copy cannot
// hold the object, or cannot depend on what is under key.
func (s *Storage) CopyObject(ctx context.Context, key, source string, opts storage.CopyOptions) (storage.Info, error) {
	const op = "CopyObject"
	if err := s.validate(op, key); err != nil {
		return storage.Info{}, err
	}
	info, header, err := s.source(ctx, op, source, opts.Source, opts.Same)
	if err != nil {
		return storage.Info{}, err
	}
	if key == source && !opts.Replace {
		return info, opts.Conditions.CheckWrite(true, info) // it is there already, and stores refuse to say so
	}
	w := &write{
		store: s, ctx: ctx, op: op, key: key,
		opts: storage.SetOptions{Headers: opts.Headers, Metadata: opts.Metadata, Tags: opts.Tags, Conditions: opts.Conditions},
	}
	if !opts.Replace {
		w.opts.Headers, w.opts.Metadata = info.Headers, info.Metadata
	}
	switch {
	case opts.Conditions.IsZero() && info.Size <= maxPut:
		return w.copy(source, info, opts.Replace)
	case info.Size == 0:
		return w.whole(nil)
	}
	if opts.Replace {
		header.Del("X-Amz-Tagging-Count")
	}
	if w.extra, err = s.kept(ctx, op, source, header); err != nil {
		return storage.Info{}, err
	}
	answer, etag, err := w.upload(func(upload string) ([]part, error) {
		return w.copyParts(upload, nil, source, info.ETag, span{0, info.Size})
	})
	if err != nil {
		return storage.Info{}, err
	}
	return w.info(info.Size, answer, etag), nil
}

// source describes what is to be copied.
func (s *Storage) source(ctx context.Context, op, key string, conditions storage.Conditions, same func(storage.Info) bool) (storage.Info, http.Header, error) {
	info, header, err := s.head(ctx, op, key, storage.Conditions{})
	if err != nil {
		return storage.Info{}, nil, err
	}
	if err := conditions.CheckRead(info); err != nil {
		return storage.Info{}, nil, storage.Errorf(storage.CodePreconditionFailed, op, "a condition on %q does not hold", key).WithCause(err)
	}
	if same != nil && !same(info) {
		return storage.Info{}, nil, storage.Errorf(storage.CodePreconditionFailed, op, "the store holds another object under %q", key)
	}
	return info, header, nil
}

// kept returns headers of an object that one made of it should have besides
// those of an Info: it stays as it is stored. The tags need another request.
func (s *Storage) kept(ctx context.Context, op, key string, header http.Header) (http.Header, error) {
	kept := http.Header{}
	for _, name := range []string{
		"X-Amz-Storage-Class", "X-Amz-Website-Redirect-Location", "X-Amz-Server-Side-Encryption",
		"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id", "X-Amz-Server-Side-Encryption-Bucket-Key-Enabled",
	} {
		if value := header.Get(name); value != "" {
			kept[name] = []string{value}
		}
	}
	if count := header.Get("X-Amz-Tagging-Count"); count != "" && count != "0" {
		tags, err := s.tags(ctx, op, key)
		if err != nil {
			return nil, err
		}
		kept["X-Amz-Tagging"] = []string{encodeTags(tags)}
	}
	return kept, nil
}

// copyHeader names what is copied: source, as long as it has the entity tag.
func (w *write) copyHeader(header http.Header, source, etag string) {
	t := w.store.target
	header["X-Amz-Copy-Source"] = []string{string(wire.AppendEscaped(nil, "/"+t.bucket+"/"+t.prefix+source, true))}
	if etag != "" {
		header["X-Amz-Copy-Source-If-Match"] = []string{wire.Quote(etag)}
	}
}

// copied is the answer to a copy.
type copied struct {
	ETag         string
	LastModified time.Time
}

// copied reads the answer to a copy, which may be an error sent with 200.
func (r reply) copied(op, key string) (c copied, err error) {
	if r.err != nil {
		return c, r.err
	}
	if a := r.failure(); a != nil {
		return c, a.error(op, key)
	}
	if err := xml.Unmarshal(r.body, &c); err != nil || c.ETag == "" {
		e := storage.Errorf(storage.CodeUnavailable, op, "reading the store's answer to a copy").WithCause(err)
		e.Outcome = storage.OutcomeUnknown
		return c, e
	}
	return c, nil
}

// copy makes the object a copy of source in one request.
func (w *write) copy(source string, info storage.Info, replace bool) (storage.Info, error) {
	header := make(http.Header, 12)
	header["X-Amz-Metadata-Directive"] = []string{"COPY"}
	if replace {
		header = w.objectHeader()
		header["X-Amz-Metadata-Directive"] = []string{"REPLACE"}
		if len(w.opts.Tags) > 0 || info.TagCount > 0 {
			header["X-Amz-Tagging-Directive"] = []string{"REPLACE"}
		}
	}
	w.copyHeader(header, source, info.ETag)
	answer, body, err := w.send(w.ctx, &request{method: http.MethodPut, header: header}, nil)
	result, err := reply{answer, body, err}.copied(w.op, w.key)
	if err != nil {
		return storage.Info{}, err
	}
	made := w.info(info.Size, answer, result.ETag)
	made.Checksums = info.Checksums
	if !replace {
		made.TagCount = info.TagCount
	}
	if !result.LastModified.IsZero() {
		made.ModTime = result.LastModified.UTC()
	}
	return made, nil
}

// copyParts appends to list the parts that copy what of source lies in s.
func (w *write) copyParts(upload string, list []part, source, etag string, s span) ([]part, error) {
	for _, piece := range s.split(maxPut) {
		header := make(http.Header, 10)
		w.copyHeader(header, source, etag)
		header["X-Amz-Copy-Source-Range"] = []string{storage.Range{First: piece.first, Last: piece.end - 1}.String()}
		number := len(list) + 1
		got := w.ask(&request{method: http.MethodPut, header: header, query: partQuery(upload, number)}, nil,
			func(reply) { w.store.abort(w.key, upload) })
		result, err := got.copied(w.op, w.key)
		if err != nil {
			return nil, withoutEffect(err)
		}
		list = append(list, part{Number: number, ETag: result.ETag})
	}
	return list, nil
}

// UploadPartCopy implements storage.Copier.
func (s *Storage) UploadPartCopy(ctx context.Context, key, upload string, number int, source string, opts storage.CopyPartOptions) (storage.Part, error) {
	const op = "UploadPartCopy"
	if err := s.validatePart(op, key, upload, number); err != nil {
		return storage.Part{}, err
	}
	info, _, err := s.source(ctx, op, source, opts.Source, opts.Same)
	if err != nil {
		return storage.Part{}, err
	}
	w := &write{store: s, ctx: ctx, op: op, key: key}
	header := make(http.Header, 10)
	w.copyHeader(header, source, info.ETag)
	size := info.Size
	if opts.Range != nil {
		offset, length, err := opts.Range.Resolve(info.Size)
		if err != nil {
			return storage.Part{}, err
		}
		size = length
		header["X-Amz-Copy-Source-Range"] = []string{storage.Range{First: offset, Last: offset + length - 1}.String()}
	}
	if size > maxPut {
		return storage.Part{}, storage.Errorf(storage.CodeTooLarge, op, "the part has %d bytes and may have at most %d", size, int64(maxPut))
	}
	answer, body, err := w.send(ctx, &request{method: http.MethodPut, header: header, query: partQuery(upload, number)}, nil)
	result, err := reply{answer, body, err}.copied(op, key)
	if err != nil {
		return storage.Part{}, s.missingOfTwo(ctx, err, source)
	}
	return storage.Part{Number: number, ETag: wire.Unquote(result.ETag), Size: size, ModTime: result.LastModified.UTC()}, nil
}

// missingOfTwo decides what a 404 without a code means that may be about the
// source or about the upload: the source was there a moment ago.
func (s *Storage) missingOfTwo(ctx context.Context, err error, source string) error {
	var e *storage.Error
	if !errors.As(err, &e) || e.Code != storage.CodeKeyNotFound || strings.Contains(e.Message, "NoSuchKey") {
		return err
	}
	if there, herr := storage.Has(ctx, s, source); herr == nil && there {
		return missingUpload(err)
	}
	return err
}

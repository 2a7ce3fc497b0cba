package s3

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// CreateUpload implements storage.Multipart.
func (s *Storage) CreateUpload(ctx context.Context, key string, opts storage.SetOptions) (string, error) {
	const op = "CreateUpload"
	if err := s.validate(op, key); err != nil {
		return "", err
	}
	w := &write{store: s, ctx: ctx, op: op, key: key, opts: storage.SetOptions{Headers: opts.Headers, Metadata: opts.Metadata, Tags: opts.Tags}}
	return w.begin()
}

// UploadPart implements storage.Multipart. A part of unknown length can have
// 5 MiB, which are held in memory.
func (s *Storage) UploadPart(ctx context.Context, key, upload string, number int, b storage.Body, opts storage.SetOptions) (storage.Part, error) {
	const op = "UploadPart"
	if err := s.validatePart(op, key, upload, number); err != nil {
		return storage.Part{}, err
	}
	size := b.Size()
	if size > maxPut {
		return storage.Part{}, storage.Errorf(storage.CodeTooLarge, op, "the part has %d bytes and may have at most %d", size, int64(maxPut))
	}
	r, err := storage.OpenBody(ctx, op, b, s.unverified(opts.Checksums))
	if err != nil {
		return storage.Part{}, err
	}
	defer r.Close()
	w := &write{
		store: s, ctx: ctx, op: op, key: key, body: r,
		opts: storage.SetOptions{Checksums: opts.Checksums}, query: partQuery(upload, number),
	}
	info, err := w.transfer(size)
	if err != nil {
		return storage.Part{}, missingUpload(err)
	}
	if info.ETag == "" {
		return storage.Part{}, storage.Errorf(storage.CodeUnavailable, op, "the store gave no entity tag for a part of %q", key)
	}
	return storage.Part{Number: number, ETag: info.ETag, Size: info.Size, ModTime: info.ModTime, Checksums: opts.Checksums}, nil
}

func (s *Storage) validatePart(op, key, upload string, number int) error {
	if number < 1 || number > storage.MaxParts {
		return storage.Errorf(storage.CodeRejected, op, "the part number %d must be 1 to %d", number, storage.MaxParts)
	}
	return s.validateUpload(op, key, upload)
}

func (s *Storage) validateUpload(op, key, upload string) error {
	if upload == "" || len(upload) > storage.MaxUploadIDBytes {
		return storage.Errorf(storage.CodeUploadNotFound, op, "there is no upload with an id of %d bytes", len(upload))
	}
	return s.validate(op, key)
}

// missingUpload says of a request for an upload that a missing key is that
// upload: not every server gives its 404 a code.
func missingUpload(err error) error {
	if storage.CodeOf(err) == storage.CodeKeyNotFound {
		return storage.Errorf(storage.CodeUploadNotFound, "", "the store does not know the upload").WithCause(err)
	}
	return err
}

// CompleteUpload implements storage.Multipart. It looks at the parts first: some
// servers answer that an upload was completed of which they know nothing, if
// there is any object under its key.
func (s *Storage) CompleteUpload(ctx context.Context, key, upload string, parts []storage.Part, opts storage.SetOptions) (storage.Info, error) {
	const op = "CompleteUpload"
	if err := s.validateUpload(op, key, upload); err != nil {
		return storage.Info{}, err
	}
	if err := storage.ValidateParts(parts); err != nil {
		return storage.Info{}, err
	}
	if len(opts.Conditions.IfMatch) > 1 {
		narrowed, err := s.narrow(ctx, key, storage.Conditions{IfMatch: opts.Conditions.IfMatch})
		if err != nil {
			return storage.Info{}, err
		}
		opts.Conditions.IfMatch = narrowed.IfMatch
	}
	size, known := int64(-1), true
	have, err := s.allParts(ctx, op, key, upload)
	switch storage.CodeOf(err) {
	case storage.CodeUploadNotFound:
		return s.completedBefore(ctx, key, parts, err)
	case storage.CodeAccessDenied, storage.CodeUnsupported:
		known = false // who may upload need not be allowed to list
	default:
		if err != nil {
			return storage.Info{}, err
		}
		if size, err = sizeOf(parts, have); err != nil {
			return storage.Info{}, err
		}
	}
	w := &write{store: s, ctx: ctx, op: op, key: key, kept: true, opts: storage.SetOptions{Conditions: opts.Conditions, Checksums: opts.Checksums}}
	list := make([]part, len(parts))
	for i, p := range parts {
		list[i] = part{Number: p.Number, ETag: wire.Quote(p.ETag)}
	}
	header, etag, err := w.complete(upload, list)
	if err != nil {
		return storage.Info{}, missingUpload(err)
	}
	if known {
		return w.info(size, header, etag), nil
	}
	info, err := s.Stat(ctx, key, storage.StatOptions{})
	if err != nil || info.ETag != wire.Unquote(etag) {
		e := storage.Errorf(storage.CodeUnavailable, op, "looking for what was completed under %q", key).WithCause(err)
		e.Outcome = storage.OutcomeUnknown
		return storage.Info{}, e
	}
	return info, nil
}

// sizeOf returns the size of the object that parts make, of which the store has
// have.
func sizeOf(parts, have []storage.Part) (size int64, err error) {
	byNumber := make(map[int]storage.Part, len(have))
	for _, p := range have {
		byNumber[p.Number] = p
	}
	for i, p := range parts {
		stored, is := byNumber[p.Number]
		switch {
		case !is:
			return 0, storage.Errorf(storage.CodeInvalidPart, "CompleteUpload", "there is no part %d", p.Number)
		case stored.ETag != p.ETag:
			return 0, storage.Errorf(storage.CodeInvalidPart, "CompleteUpload", "part %d has the entity tag %q and not %q", p.Number, stored.ETag, p.ETag)
		case stored.Size < storage.MinPartBytes && i < len(parts)-1:
			return 0, storage.Errorf(storage.CodeInvalidPart, "CompleteUpload", "part %d has %d bytes, and all but the last need %d", p.Number, stored.Size, storage.MinPartBytes)
		}
		size += stored.Size
	}
	return size, nil
}

// completedBefore returns the object under key if it is the one that parts make,
// else missing.
func (s *Storage) completedBefore(ctx context.Context, key string, parts []storage.Part, missing error) (storage.Info, error) {
	etag := etagOf(parts)
	if etag == "" {
		return storage.Info{}, missing
	}
	info, err := s.Stat(ctx, key, storage.StatOptions{})
	switch {
	case err == nil && info.ETag == etag:
		return info, nil
	case err == nil || storage.CodeOf(err) == storage.CodeKeyNotFound:
		return storage.Info{}, missing
	}
	return storage.Info{}, err
}

// etagOf returns the entity tag of an object that was made of parts: the MD5 of
// their MD5s. It is empty if the parts' tags are none.
func etagOf(parts []storage.Part) string {
	hash := md5.New()
	for _, p := range parts {
		sum, err := hex.DecodeString(p.ETag)
		if err != nil || len(sum) != md5.Size {
			return ""
		}
		hash.Write(sum)
	}
	return fmt.Sprintf("%x-%d", hash.Sum(nil), len(parts))
}

// AbortUpload implements storage.Multipart.
func (s *Storage) AbortUpload(ctx context.Context, key, upload string) error {
	const op = "AbortUpload"
	if err := s.validateUpload(op, key, upload); err != nil {
		if storage.CodeOf(err) == storage.CodeUploadNotFound {
			return nil
		}
		return err
	}
	err := s.abortOnce(ctx, op, key, upload)
	switch storage.CodeOf(err) {
	case storage.CodeUploadNotFound, storage.CodeKeyNotFound:
		return nil
	}
	return err
}

// partsPage is a page of ListParts.
type partsPage struct {
	IsTruncated          bool
	NextPartNumberMarker int
	Part                 []struct {
		PartNumber                                      int
		ETag                                            string
		Size                                            int64
		LastModified                                    time.Time
		ChecksumCRC32, ChecksumCRC32C, ChecksumSHA1     string
		ChecksumSHA256, ChecksumCRC64NVME, ChecksumType string
	}
}

// ListParts implements storage.Multipart.
func (s *Storage) ListParts(ctx context.Context, key, upload string, after, limit int) ([]storage.Part, bool, error) {
	const op = "ListParts"
	if err := s.validateUpload(op, key, upload); err != nil {
		return nil, false, err
	}
	if limit <= 0 || limit > storage.MaxListLimit {
		limit = storage.MaxListLimit
	}
	return s.listParts(ctx, op, key, upload, max(0, after), limit)
}

func (s *Storage) listParts(ctx context.Context, op, key, upload string, after, limit int) ([]storage.Part, bool, error) {
	var page partsPage
	q := query{{"max-parts", strconv.Itoa(limit)}, {"part-number-marker", strconv.Itoa(after)}, {"uploadId", upload}}
	if err := s.getXML(ctx, op, key, q, &page); err != nil {
		return nil, false, missingUpload(err)
	}
	parts := make([]storage.Part, 0, len(page.Part))
	for _, p := range page.Part {
		if p.PartNumber <= after || len(parts) == limit {
			continue
		}
		parts = append(parts, storage.Part{
			Number: p.PartNumber, ETag: wire.Unquote(p.ETag), Size: p.Size, ModTime: p.LastModified.UTC(),
			Checksums: storage.Checksums{
				CRC32: decoded(p.ChecksumCRC32, 4), CRC32C: decoded(p.ChecksumCRC32C, 4), SHA1: decoded(p.ChecksumSHA1, 20),
				SHA256: decoded(p.ChecksumSHA256, 32), CRC64NVME: decoded(p.ChecksumCRC64NVME, 8),
			},
		})
	}
	return parts, page.IsTruncated && len(parts) > 0, nil
}

// allParts returns every part of an upload.
func (s *Storage) allParts(ctx context.Context, op, key, upload string) (all []storage.Part, err error) {
	for after, more := 0, true; more; after = all[len(all)-1].Number {
		var parts []storage.Part
		if parts, more, err = s.listParts(ctx, op, key, upload, after, storage.MaxListLimit); err != nil {
			return nil, err
		}
		if all = append(all, parts...); len(all) == 0 {
			break
		}
	}
	return all, nil
}

// decoded returns a digest of size bytes that is encoded in base64, or nil.
func decoded(value string, size int) []byte {
	sum, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(sum) != size {
		return nil
	}
	return sum
}

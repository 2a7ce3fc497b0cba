package storage

import (
	"context"
	"time"
)

const (
	// MaxParts is the highest number of a part; the lowest is 1.
	MaxParts = 10000
	// MinPartBytes is the least that S3 takes for any part but the last.
	MinPartBytes = 5 << 20
)

// Multipart is implemented by stores that take an object in parts, which may
// come in any order and at the same time. Nothing is visible under key before
// CompleteUpload returns nil. An upload is named by the id that CreateUpload
// gave; ids are opaque, in clear, and at most MaxUploadIDBytes long. A store
// that has never heard of an id answers UPLOAD_NOT_FOUND.
//
// Capabilities.Multipart says whether a store does this natively; a store may
// also keep parts under ReservedParts until the end. A Storage without this
// interface cannot take parts at all.
type Multipart interface {
	// CreateUpload begins an upload of key with what opts say of the whole
	// object. Checksums and Conditions have no meaning here.
	CreateUpload(ctx context.Context, key string, opts SetOptions) (upload string, err error)

	// UploadPart stores the body as a part, in the place of one that had
	// the number before. As in SetStream, a body that ends with an error
	// leaves what was there. Of opts, only Checksums count.
	UploadPart(ctx context.Context, key, upload string, number int, body Body, opts SetOptions) (Part, error)

	// CompleteUpload makes the object of the parts named, which must ascend
	// by number and whose ETags must be those that UploadPart gave, else
	// INVALID_PART. Of opts, only Conditions and Checksums count; the latter
	// are those of the whole object, and a store that can check them does. To
	// complete an upload again that was completed to the same object succeeds
	// where the store can tell, else it is UPLOAD_NOT_FOUND.
	CompleteUpload(ctx context.Context, key, upload string, parts []Part, opts SetOptions) (Info, error)

	// AbortUpload forgets an upload and its parts. Parts that are under way
	// fail. It is no error if the upload is gone.
	AbortUpload(ctx context.Context, key, upload string) error

	// ListParts returns up to limit parts with numbers above after, in
	// ascending order, and whether there are more.
	ListParts(ctx context.Context, key, upload string, after, limit int) (parts []Part, more bool, err error)

	// ListUploads returns a page of the uploads that were neither completed
	// nor aborted. It is UNSUPPORTED where they cannot be known.
	ListUploads(ctx context.Context, opts ListUploadsOptions) (UploadPage, error)
}

// MaxUploadIDBytes bounds the ids of uploads.
const MaxUploadIDBytes = 4 << 10

// Part is one part of an upload.
type Part struct {
	// Number is 1 to MaxParts.
	Number int
	// ETag identifies the part's content, without quotes.
	ETag string
	// Size, ModTime and Checksums may be absent in what CompleteUpload gets.
	Size      int64
	ModTime   time.Time
	Checksums Checksums
}

// Upload is an upload that runs.
type Upload struct {
	Key       string
	ID        string
	Initiated time.Time
}

// ListUploadsOptions select a page of uploads.
type ListUploadsOptions struct {
	// Prefix and Delimiter are as in ListOptions.
	Prefix, Delimiter string
	// AfterKey and AfterID are the last upload of the page before. Without
	// AfterID, all uploads of AfterKey are passed over.
	AfterKey, AfterID string
	// Limit is the most entries of the page; 0 means MaxListLimit.
	Limit int
}

// UploadPage is one page of uploads, in ascending order of key and then of
// time.
type UploadPage struct {
	Uploads  []Upload
	Prefixes []string
	// NextKey and NextID are the AfterKey and AfterID of the page that
	// follows; NextKey is empty at the end.
	NextKey, NextID string
}

// ValidateParts returns INVALID_PART unless parts are 1 to MaxParts, ascend by
// number and have entity tags, as CompleteUpload takes them.
func ValidateParts(parts []Part) error {
	const op = "CompleteUpload"
	if len(parts) == 0 || len(parts) > MaxParts {
		return Errorf(CodeInvalidPart, op, "an upload is made of 1 to %d parts and not of %d", MaxParts, len(parts))
	}
	last := 0
	for _, p := range parts {
		switch {
		case p.Number <= last || p.Number > MaxParts:
			return Errorf(CodeInvalidPart, op, "part numbers must ascend from 1 to %d, and %d follows %d", MaxParts, p.Number, last)
		case p.ETag == "":
			return Errorf(CodeInvalidPart, op, "part %d has no entity tag", p.Number)
		}
		last = p.Number
	}
	return nil
}

package storage

import (
	"context"
	"io"
	"strings"
	"time"
)

// Storage is one object store: a flat map from key to object. All methods are
// safe for concurrent use, honour ctx at once, and return errors for which
// CodeOf and Classify give the code and class. Keys satisfy ValidateKey.
type Storage interface {
	// GetStream opens the object under key, or the part of it that
	// opts.Range names. The caller closes Object.Body. A body that ends
	// early returns an error, never io.EOF. Codes: KEY_NOT_FOUND,
	// INVALID_RANGE, PRECONDITION_FAILED, NOT_MODIFIED.
	GetStream(ctx context.Context, key string, opts GetOptions) (*Object, error)

	// SetStream stores body under key, whole or not at all: until it
	// returns nil a reader sees the old object, and after an error too
	// (unless the outcome is unknown, as after a connection lost once the
	// last byte was sent). Codes: PRECONDITION_FAILED, NO_SPACE, INVALID_BODY.
	SetStream(ctx context.Context, key string, body Body, opts SetOptions) (Info, error)

	// SetPartial overwrites the bytes of key from offset on with body, and
	// extends the object where it is shorter, with zeros up to offset. A
	// missing object counts as empty. It gives UNSUPPORTED where
	// Capabilities.PartialWrite is false.
	SetPartial(ctx context.Context, key string, offset int64, body Body) (Info, error)

	// Delete removes key. It is no error if there is nothing under key.
	Delete(ctx context.Context, key string) error

	// List returns one page of keys in ascending byte order.
	List(ctx context.Context, opts ListOptions) (ListPage, error)

	// Stat describes the object under key without its content. Codes as
	// of GetStream.
	Stat(ctx context.Context, key string, opts StatOptions) (Info, error)

	// Capabilities says what this store can do. It does no I/O.
	Capabilities() Capabilities
}

// Info describes an object.
type Info struct {
	// Key is the object's full key.
	Key string
	// Size is the size of the whole object in bytes, also when Info comes
	// with a range of it.
	Size int64
	// ModTime is the time of the last write, as the store tells it.
	ModTime time.Time
	// ETag is the strong entity tag without quotes, empty where the store
	// has none. A weak tag keeps its W/ prefix.
	ETag string
	// Headers are the standard headers stored with the object.
	Headers Headers
	// Metadata is the user's metadata; names are lower case, without the
	// prefix that a protocol gives them. Nil in listings.
	Metadata map[string]string
	// Checksums of the whole content, where the store keeps them.
	Checksums Checksums
	// TagCount is the number of the object's tags. It may be 0 in listings.
	TagCount int
	// ServedBy is the path of the member that answered, e.g. mirrors/eu. A
	// mux fills it in; stores leave it empty.
	ServedBy string
	// Version is the version that a mux gave with the write, or empty. A mux
	// fills it in from VersionMetadata, which it takes out of Metadata.
	Version string
}

// Headers are the standard HTTP headers kept with an object. An empty value
// means that the header is absent.
type Headers struct {
	ContentType        string
	CacheControl       string
	ContentDisposition string
	ContentEncoding    string
	ContentLanguage    string
	Expires            string
}

// Object is an open object.
type Object struct {
	Info
	// Offset and Length say which bytes of the object Body yields.
	Offset, Length int64
	// Body yields exactly Length bytes, or an error.
	Body io.ReadCloser
}

// GetOptions narrow a GetStream. The zero value reads the whole object.
type GetOptions struct {
	// Range is the part to read; nil is all of it.
	Range *Range
	// Conditions must hold, else PRECONDITION_FAILED or NOT_MODIFIED.
	Conditions Conditions
}

// StatOptions narrow a Stat.
type StatOptions struct {
	// Conditions must hold, else PRECONDITION_FAILED or NOT_MODIFIED.
	Conditions Conditions
}

// SetOptions say how SetStream stores an object.
type SetOptions struct {
	// Headers and Metadata are stored with the object. A store without
	// Capabilities.Metadata keeps at most the content type.
	Headers  Headers
	Metadata map[string]string
	// Tags are stored with the object; see Tagger. UNSUPPORTED where
	// Capabilities.Tagging is false.
	Tags map[string]string
	// Checksums of the content that are known before it is read. A store
	// that can have them verified by its server passes them on.
	Checksums Checksums
	// Conditions must hold at the moment the object becomes visible. Only
	// IfMatch and IfNoneMatch have a meaning for writes. UNSUPPORTED where
	// Capabilities.ConditionalWrite is false.
	Conditions Conditions
	// CopyOf, if set, says that the body is the content of another object. A
	// mux then has members that hold that very object copy it inside
	// themselves; all others read the body. Stores take no notice.
	CopyOf *CopyOf
}

// ListOptions select a page of a listing.
type ListOptions struct {
	// Prefix restricts the listing to keys that begin with it.
	Prefix string
	// Delimiter, if not empty, folds all keys that contain it after Prefix
	// into common prefixes that end with it.
	Delimiter string
	// After is the last entry of the page before: only keys and common
	// prefixes above it in byte order are returned, and nothing that a
	// common prefix equal to After stands for.
	After string
	// Limit is the most entries, keys and common prefixes together, that
	// the page may have; 0 means 1000, and so does anything above it.
	Limit int
	// Reserved lists what StorageMux keeps for itself, which is left out
	// otherwise. Prefix must then begin with ReservedPrefix.
	Reserved bool
}

// MaxListLimit is the most entries of one page.
const MaxListLimit = 1000

// PageLimit returns the number of entries that the page may have.
func (o ListOptions) PageLimit() int {
	if o.Limit <= 0 || o.Limit > MaxListLimit {
		return MaxListLimit
	}
	return o.Limit
}

// Fold returns the common prefix that key is folded into, or "" if it is
// listed as itself. Key must begin with o.Prefix.
func (o ListOptions) Fold(key string) string {
	if o.Delimiter == "" {
		return ""
	}
	i := strings.Index(key[len(o.Prefix):], o.Delimiter)
	if i < 0 {
		return ""
	}
	return key[:len(o.Prefix)+i+len(o.Delimiter)]
}

// ListPage is one page of a listing.
type ListPage struct {
	// Objects in ascending byte order of their keys. Headers, Metadata and
	// Checksums may be absent, and where the store does not list it, ETag.
	Objects []Info
	// Prefixes are the common prefixes in ascending byte order.
	Prefixes []string
	// Next is the After of the page that follows, or "" at the end.
	Next string
}

package staged

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// TreeRemover is implemented by stores that remove folders in one request, or
// in which they stay when they are empty. RemoveTree removes everything under
// prefix, which ends with a slash; it is no error if there is nothing.
type TreeRemover interface {
	RemoveTree(ctx context.Context, prefix string) error
}

// Uploads implements storage.Multipart over a store.
type Uploads struct {
	store storage.Storage
	valid func(op, key string) error
	swept atomic.Int64 // when, in nanoseconds since 1970
	seed  maphash.Seed
	turns [64]chan struct{} // one Complete per upload at a time; uploads share
}

var _ storage.Multipart = (*Uploads)(nil)

// New returns uploads over store, which must list what is reserved when it is
// asked to. valid returns an error for what no object there can be called or if
// nothing can be stored; nil means storage.ValidateKey. It does no I/O.
func New(store storage.Storage, valid func(op, key string) error) *Uploads {
	if valid == nil {
		valid = func(_, key string) error { return storage.ValidateKey(key) }
	}
	u := &Uploads{store: store, valid: valid, seed: maphash.MakeSeed()}
	for i := range u.turns {
		u.turns[i] = make(chan struct{}, 1)
	}
	return u
}

// CreateUpload implements storage.Multipart.
func (u *Uploads) CreateUpload(ctx context.Context, key string, opts storage.SetOptions) (string, error) {
	if err := u.valid("CreateUpload", key); err != nil {
		return "", err
	}
	if !u.store.Capabilities().Tagging {
		if err := storage.RefuseTags("CreateUpload", opts.Tags); err != nil {
			return "", err
		}
	}
	u.maybeSweep(ctx)
	id := newID(time.Now())
	err := u.write(ctx, manifestKey(id), manifest{Version: 1, Key: key, Headers: opts.Headers, Metadata: opts.Metadata, Tags: opts.Tags})
	if err != nil {
		return "", err
	}
	return id, nil
}

// cleanUpTimeout bounds the removal of what is not needed any more.
const cleanUpTimeout = 30 * time.Second

// cleanUp returns a context for removals, which go on if the caller leaves.
func cleanUp(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
}

// AbortUpload implements storage.Multipart.
func (u *Uploads) AbortUpload(ctx context.Context, key, upload string) error {
	const op = "AbortUpload"
	if err := u.valid(op, key); err != nil {
		return err
	}
	_, err := u.find(ctx, op, key, upload)
	switch {
	case storage.CodeOf(err) == storage.CodeUploadNotFound:
		return nil
	case err != nil:
		return err
	}
	return u.remove(ctx, upload)
}

// remove ends an upload. What a part that is under way still adds, it removes
// itself when it finds the upload gone.
func (u *Uploads) remove(ctx context.Context, id string) error {
	if err := u.store.Delete(ctx, manifestKey(id)); err != nil {
		return err
	}
	ctx, cancel := cleanUp(ctx)
	defer cancel()
	if tree, is := u.store.(TreeRemover); is {
		return tree.RemoveTree(ctx, prefixOf(id))
	}
	return u.each(ctx, prefixOf(id), func(key string) error { return u.store.Delete(ctx, key) })
}

// maxListed bounds how many keys of one upload are looked at: those of all
// parts, each of them sent twice, with contents and markers.
const maxListed = 4 * storage.MaxParts

// each calls do with every key under prefix, in ascending order.
func (u *Uploads) each(ctx context.Context, prefix string, do func(key string) error) error {
	opts := storage.ListOptions{Prefix: prefix, Reserved: true}
	for seen := 0; seen < maxListed; {
		page, err := u.store.List(ctx, opts)
		if err != nil {
			return err
		}
		for _, o := range page.Objects {
			if err := do(o.Key); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		seen, opts.After = seen+len(page.Objects), page.Next
	}
	return storage.Errorf(storage.CodeUnavailable, "List", "there are more than %d keys under %q", maxListed, prefix)
}

// find returns the manifest of an upload of key that runs.
func (u *Uploads) find(ctx context.Context, op, key, id string) (manifest, error) {
	missing := storage.Errorf(storage.CodeUploadNotFound, op, "there is no such upload of %q", key)
	if _, ok := begunAt(id); !ok {
		return manifest{}, missing
	}
	var m manifest
	err := u.read(ctx, op, manifestKey(id), &m)
	switch {
	case storage.CodeOf(err) == storage.CodeKeyNotFound, err == nil && m.Key != key:
		return manifest{}, missing
	case err != nil:
		return manifest{}, err
	}
	return m, nil
}

// running returns UPLOAD_NOT_FOUND if the upload was ended.
func (u *Uploads) running(ctx context.Context, op, key, id string) error {
	there, err := storage.Has(ctx, u.store, manifestKey(id))
	if err == nil && !there {
		return storage.Errorf(storage.CodeUploadNotFound, op, "the upload of %q was ended meanwhile", key)
	}
	return err
}

// maxDocument bounds a manifest: metadata is at most 2 KiB where S3 limits it,
// and what others allow is a matter of kilobytes.
const maxDocument = 1 << 20

func (u *Uploads) write(ctx context.Context, key string, document any) error {
	data, err := json.Marshal(document)
	if err != nil {
		return err
	}
	if len(data) > maxDocument {
		return storage.Errorf(storage.CodeTooLarge, "CreateUpload", "the headers and metadata of an upload have %d bytes and may have %d", len(data), maxDocument)
	}
	_, err = storage.Set(ctx, u.store, key, data, storage.SetOptions{Headers: storage.Headers{ContentType: "application/json"}})
	return err
}

func (u *Uploads) read(ctx context.Context, op, key string, document any) error {
	data, _, err := storage.Get(ctx, u.store, key)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, document); err != nil {
		return storage.Errorf(storage.CodeUnavailable, op, "reading %q", key).WithCause(err)
	}
	return nil
}

// maxOpen bounds the uploads that are looked at in one listing.
const maxOpen = 10_000

// ListUploads implements storage.Multipart. It reads what each upload is of.
func (u *Uploads) ListUploads(ctx context.Context, opts storage.ListUploadsOptions) (storage.UploadPage, error) {
	const op = "ListUploads"
	if err := u.valid(op, storage.ProbeKey); err != nil {
		return storage.UploadPage{}, err
	}
	var uploads []storage.Upload
	list := storage.ListOptions{Prefix: openPrefix, Delimiter: "/", Reserved: true}
	for {
		page, err := u.store.List(ctx, list)
		if err != nil {
			return storage.UploadPage{}, err
		}
		for _, prefix := range page.Prefixes {
			id := strings.TrimSuffix(strings.TrimPrefix(prefix, openPrefix), "/")
			at, ok := begunAt(id)
			if !ok {
				continue
			}
			var m manifest
			err := u.read(ctx, op, manifestKey(id), &m)
			if storage.CodeOf(err) == storage.CodeKeyNotFound {
				continue
			}
			if err != nil {
				return storage.UploadPage{}, err
			}
			uploads = append(uploads, storage.Upload{Key: m.Key, ID: id, Initiated: at})
		}
		switch {
		case page.Next == "":
			return storage.PageUploads(uploads, nil, opts), nil
		case len(uploads) > maxOpen:
			return storage.UploadPage{}, storage.Errorf(storage.CodeUnavailable, op, "more than %d uploads are open", maxOpen)
		}
		list.After = page.Next
	}
}

package staged

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/suaveplan/storagemux/internal/storage"
)

// UploadPart implements storage.Multipart. The part that had the number before
// counts until the new one is whole.
func (u *Uploads) UploadPart(ctx context.Context, key, upload string, number int, body storage.Body, opts storage.SetOptions) (storage.Part, error) {
	const op = "UploadPart"
	if number < 1 || number > storage.MaxParts {
		return storage.Part{}, storage.Errorf(storage.CodeRejected, op, "the part number %d must be 1 to %d", number, storage.MaxParts)
	}
	if err := u.valid(op, key); err != nil {
		return storage.Part{}, err
	}
	if _, err := u.find(ctx, op, key, upload); err != nil {
		return storage.Part{}, err
	}
	m := marker{number: number, nonce: rand.Text()}
	hashed := &hashedBody{Body: body}
	info, err := u.store.SetStream(ctx, dataKey(upload, m.nonce), hashed, storage.SetOptions{Checksums: opts.Checksums})
	if err != nil {
		u.discardUnknown(ctx, upload, m, err)
		return storage.Part{}, ofPart(err)
	}
	m.at, m.size, m.hash = time.Now().UnixNano(), info.Size, hashed.sum.Load()
	if _, err := storage.Set(ctx, u.store, m.key(upload), []byte(m.etag()), storage.SetOptions{}); err != nil {
		u.discard(ctx, upload, m)
		return storage.Part{}, ofPart(err)
	}
	if err := u.running(ctx, op, key, upload); err != nil {
		if storage.CodeOf(err) == storage.CodeUploadNotFound {
			u.discard(ctx, upload, m)
		}
		return storage.Part{}, err
	}
	u.supersede(ctx, upload, m)
	part := m.part()
	part.Checksums = opts.Checksums
	return part, nil
}

// ofPart says of the error of a write that it is that of a part.
func ofPart(err error) error {
	var e *storage.Error
	if errors.As(err, &e) {
		e.Op = "UploadPart"
	}
	return err
}

// discardUnknown removes the content of a part if it may have been stored though
// an error came.
func (u *Uploads) discardUnknown(ctx context.Context, id string, m marker, err error) {
	var e *storage.Error
	if errors.As(err, &e) && e.Outcome == storage.OutcomeUnknown {
		ctx, cancel := cleanUp(ctx)
		defer cancel()
		_ = u.store.Delete(ctx, dataKey(id, m.nonce))
	}
}

// discard removes a part, best effort: what stays goes with the upload.
func (u *Uploads) discard(ctx context.Context, id string, m marker) {
	ctx, cancel := cleanUp(ctx)
	defer cancel()
	_ = u.store.Delete(ctx, m.key(id))
	_ = u.store.Delete(ctx, dataKey(id, m.nonce))
}

// supersede removes the parts that m has replaced.
func (u *Uploads) supersede(ctx context.Context, id string, m marker) {
	var old []marker
	_ = u.each(ctx, partPrefix(id, m.number), func(key string) error {
		if o, ok := parseMarker(id, key); ok && m.newer(o) {
			old = append(old, o)
		}
		return nil
	})
	for _, o := range old {
		u.discard(ctx, id, o)
	}
}

// markers returns the parts of an upload in ascending order.
func (u *Uploads) markers(ctx context.Context, id string) ([]marker, error) {
	newest := map[int]marker{}
	err := u.each(ctx, markersPrefix(id), func(key string) error {
		if m, ok := parseMarker(id, key); ok && (newest[m.number].nonce == "" || m.newer(newest[m.number])) {
			newest[m.number] = m
		}
		return nil
	})
	return slices.SortedFunc(maps.Values(newest), func(a, b marker) int { return cmp.Compare(a.number, b.number) }), err
}

// ListParts implements storage.Multipart.
func (u *Uploads) ListParts(ctx context.Context, key, upload string, after, limit int) (parts []storage.Part, more bool, err error) {
	const op = "ListParts"
	if err := u.valid(op, key); err != nil {
		return nil, false, err
	}
	if _, err := u.find(ctx, op, key, upload); err != nil {
		return nil, false, err
	}
	if limit <= 0 || limit > storage.MaxListLimit {
		limit = storage.MaxListLimit
	}
	markers, err := u.markers(ctx, upload)
	if err != nil {
		return nil, false, err
	}
	for _, m := range markers {
		if m.number <= after {
			continue
		}
		if len(parts) == limit {
			return parts, true, nil
		}
		parts = append(parts, m.part())
	}
	return parts, false, nil
}

// hashedBody computes the hash of its content whenever that is read whole. A store
// may read it several times, also at the same time.
type hashedBody struct {
	storage.Body
	sum atomic.Uint64
}

// Open implements storage.Body.
func (b *hashedBody) Open() (io.ReadCloser, error) {
	source, err := b.Body.Open()
	if err != nil {
		return nil, err
	}
	r := &hashedReader{ReadCloser: source, body: b, left: b.Size()}
	r.hash.Reset()
	if r.left == 0 {
		b.sum.Store(r.hash.Sum64())
	}
	return r, nil
}

type hashedReader struct {
	io.ReadCloser
	body *hashedBody
	hash xxhash.Digest
	left int64
}

// Read implements io.Reader.
func (r *hashedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	_, _ = r.hash.Write(p[:n])
	r.left -= int64(n)
	if err == io.EOF || r.left == 0 {
		r.body.sum.Store(r.hash.Sum64())
	}
	return n, err
}

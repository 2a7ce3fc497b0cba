package muxengine

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// fakeUpload is an upload that a fake has begun.
type fakeUpload struct {
	id, key string
	began   time.Time
	opts    storage.SetOptions
	parts   map[int]fakePart
}

type fakePart struct {
	storage.Part
	data []byte
}

func (f *fake) upload(key, id string) (*fakeUpload, error) {
	for _, u := range f.uploads {
		if u.key == key && u.id == id {
			return u, nil
		}
	}
	return nil, storage.Errorf(storage.CodeUploadNotFound, "", "no upload %s of %s", id, key)
}

func (f *fake) openUploads() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.uploads)
}

func (f *fake) CreateUpload(ctx context.Context, key string, opts storage.SetOptions) (string, error) {
	if err := f.enter(ctx, "createUpload", key); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.created++
	u := &fakeUpload{id: fmt.Sprintf("%s-%03d", f.name, f.created), key: key, began: time.Now(), opts: opts, parts: map[int]fakePart{}}
	f.uploads = append(f.uploads, u)
	return u.id, nil
}

func (f *fake) UploadPart(ctx context.Context, key, id string, number int, body storage.Body, _ storage.SetOptions) (storage.Part, error) {
	if err := f.enter(ctx, "uploadPart", key); err != nil {
		return storage.Part{}, err
	}
	data, err := f.read(ctx, body)
	if err != nil {
		return storage.Part{}, err
	}
	return f.keepPart(key, id, number, data)
}

func (f *fake) keepPart(key, id string, number int, data []byte) (storage.Part, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u, err := f.upload(key, id)
	if err != nil {
		return storage.Part{}, err
	}
	sum := md5.Sum(append([]byte(f.salt), data...))
	part := storage.Part{Number: number, ETag: hex.EncodeToString(sum[:]), Size: int64(len(data))}
	u.parts[number] = fakePart{part, data}
	return part, nil
}

func (f *fake) CompleteUpload(ctx context.Context, key, id string, parts []storage.Part, opts storage.SetOptions) (storage.Info, error) {
	if err := f.enter(ctx, "completeUpload", key); err != nil {
		return storage.Info{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	u, err := f.upload(key, id)
	if err != nil {
		return storage.Info{}, err
	}
	var whole []byte
	for _, part := range parts {
		own, ok := u.parts[part.Number]
		if !ok || own.ETag != part.ETag {
			return storage.Info{}, storage.Errorf(storage.CodeInvalidPart, "", "part %d", part.Number)
		}
		whole = append(whole, own.data...)
	}
	old, exists := f.objects[key]
	if err := opts.Conditions.CheckWrite(exists, old.info); err != nil {
		return storage.Info{}, err
	}
	f.uploads = slices.DeleteFunc(f.uploads, func(one *fakeUpload) bool { return one == u })
	info := f.store(key, whole, u.opts)
	if f.after != nil {
		if err := f.after(ctx, "completeUpload"); err != nil {
			return storage.Info{}, err
		}
	}
	return info, nil
}

func (f *fake) AbortUpload(ctx context.Context, key, id string) error {
	if err := f.enter(ctx, "abortUpload", key); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uploads = slices.DeleteFunc(f.uploads, func(u *fakeUpload) bool { return u.key == key && u.id == id })
	return nil
}

func (f *fake) ListParts(ctx context.Context, key, id string, after, limit int) ([]storage.Part, bool, error) {
	if err := f.enter(ctx, "listParts", key); err != nil {
		return nil, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	u, err := f.upload(key, id)
	if err != nil {
		return nil, false, err
	}
	var parts []storage.Part
	for _, n := range slices.Sorted(maps.Keys(u.parts)) {
		switch {
		case n <= after:
		case len(parts) == limit:
			return parts, true, nil
		default:
			parts = append(parts, u.parts[n].Part)
		}
	}
	return parts, false, nil
}

func (f *fake) ListUploads(ctx context.Context, opts storage.ListUploadsOptions) (storage.UploadPage, error) {
	if err := f.enter(ctx, "listUploads", opts.AfterKey); err != nil {
		return storage.UploadPage{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	sorted := slices.Clone(f.uploads)
	slices.SortStableFunc(sorted, func(a, b *fakeUpload) int { return strings.Compare(a.key, b.key) })
	var page storage.UploadPage
	for _, u := range sorted {
		if !strings.HasPrefix(u.key, opts.Prefix) || u.key < opts.AfterKey || u.key == opts.AfterKey && (opts.AfterID == "" || u.id <= opts.AfterID) {
			continue
		}
		if len(page.Uploads) == opts.Limit {
			last := page.Uploads[len(page.Uploads)-1]
			page.NextKey, page.NextID = last.Key, last.ID
			break
		}
		page.Uploads = append(page.Uploads, storage.Upload{Key: u.key, ID: u.id, Initiated: u.began})
	}
	return page, nil
}

package staged

import (
	"context"
	"hash/maphash"
	"io"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/suaveplan/storagemux/internal/storage"
)

// CompleteUpload implements storage.Multipart. It copies the parts through this
// process, a buffer at a time, into the object, which replaces the one before as
// SetStream does.
func (u *Uploads) CompleteUpload(ctx context.Context, key, upload string, parts []storage.Part, opts storage.SetOptions) (storage.Info, error) {
	const op = "CompleteUpload"
	if err := u.valid(op, key); err != nil {
		return storage.Info{}, err
	}
	if err := storage.ValidateParts(parts); err != nil {
		return storage.Info{}, err
	}
	if !opts.Conditions.IsZero() && !u.store.Capabilities().ConditionalWrite {
		return storage.Info{}, storage.Errorf(storage.CodeUnsupported, op, "this store has no conditional writes")
	}
	release, err := u.turn(ctx, op, upload)
	if err != nil {
		return storage.Info{}, err
	}
	defer release()
	m, err := u.find(ctx, op, key, upload)
	if storage.CodeOf(err) == storage.CodeUploadNotFound {
		return u.completedBefore(ctx, key, upload, parts, err)
	}
	if err != nil {
		return storage.Info{}, err
	}
	markers, err := u.markers(ctx, upload)
	if err != nil {
		return storage.Info{}, err
	}
	body := &composed{ctx: ctx, store: u.store, id: upload}
	if body.parts, err = choose(markers, parts); err != nil {
		return storage.Info{}, err
	}
	info, err := u.store.SetStream(ctx, key, body, storage.SetOptions{
		Headers: m.Headers, Metadata: m.Metadata, Tags: m.Tags, Conditions: opts.Conditions, Checksums: opts.Checksums,
	})
	if err != nil {
		// Another process may have completed it meanwhile, and removed parts.
		return u.completedBefore(ctx, key, upload, parts, err)
	}
	return u.completed(ctx, key, upload, parts, info), nil
}

// turn waits until no other Complete of the upload is under way here.
func (u *Uploads) turn(ctx context.Context, op, id string) (release func(), err error) {
	turn := u.turns[maphash.String(u.seed, id)%uint64(len(u.turns))]
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, storage.Interrupted(ctx, op, "waiting for another completion")
	}
}

// choose returns the markers of parts among all that there are.
func choose(markers []marker, parts []storage.Part) ([]marker, error) {
	byNumber := make(map[int]marker, len(markers))
	for _, m := range markers {
		byNumber[m.number] = m
	}
	chosen := make([]marker, 0, len(parts))
	for _, p := range parts {
		m, is := byNumber[p.Number]
		switch {
		case !is:
			return nil, storage.Errorf(storage.CodeInvalidPart, "CompleteUpload", "there is no part %d", p.Number)
		case m.etag() != p.ETag:
			return nil, storage.Errorf(storage.CodeInvalidPart, "CompleteUpload", "part %d has the entity tag %q and not %q", p.Number, m.etag(), p.ETag)
		}
		chosen = append(chosen, m)
	}
	return chosen, nil
}

// completed keeps for a while that the upload became info, and removes it.
func (u *Uploads) completed(ctx context.Context, key, id string, parts []storage.Part, info storage.Info) storage.Info {
	ctx, cancel := cleanUp(ctx)
	defer cancel()
	if stat, err := u.store.Stat(ctx, key, storage.StatOptions{}); err == nil && stat.Size == info.Size && (info.ETag == "" || stat.ETag == info.ETag) {
		info = stat
	}
	// Should this fail, the object is there all the same: who completes the
	// upload once more is told that it is gone.
	_ = u.write(ctx, doneKey(id), done{Version: 1, Key: key, Parts: digest(parts), Size: info.Size, ETag: info.ETag, ModTime: info.ModTime})
	_ = u.remove(ctx, id)
	return info
}

// completedBefore returns the object under key if the upload became it, made of
// the same parts, else the error failed.
func (u *Uploads) completedBefore(ctx context.Context, key, id string, parts []storage.Part, failed error) (storage.Info, error) {
	if _, ok := begunAt(id); !ok {
		return storage.Info{}, failed
	}
	var d done
	if err := u.read(ctx, "CompleteUpload", doneKey(id), &d); err != nil || d.Key != key || d.Parts != digest(parts) {
		return storage.Info{}, failed
	}
	info, err := u.store.Stat(ctx, key, storage.StatOptions{})
	if err != nil || !d.is(info) {
		return storage.Info{}, failed
	}
	return info, nil
}

// composed is the content of the parts, one after another.
type composed struct {
	ctx   context.Context
	store storage.Storage
	id    string
	parts []marker
}

// Size implements storage.Body.
func (c *composed) Size() (n int64) {
	for _, m := range c.parts {
		n += m.size
	}
	return n
}

// Replayable implements storage.Body.
func (c *composed) Replayable() bool { return true }

// Open implements storage.Body.
func (c *composed) Open() (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(c.ctx)
	return &composedReader{composed: c, ctx: ctx, cancel: cancel, rest: c.parts, moved: storage.Progress(ctx)}, nil
}

// composedReader reads the parts, one open at a time, and checks each of them.
type composedReader struct {
	*composed
	ctx    context.Context
	cancel context.CancelFunc

	mu   sync.Mutex
	rest []marker
	open io.ReadCloser // of the first of rest
	// moved tells whoever waits for the whole object that it grows.
	moved func()
	hash  *xxhash.Digest
	shut  bool
}

// Read implements io.Reader.
func (r *composedReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shut {
		return 0, io.ErrClosedPipe
	}
	for len(r.rest) > 0 {
		m := r.rest[0]
		if r.open == nil {
			obj, err := r.store.GetStream(r.ctx, dataKey(r.id, m.nonce), storage.GetOptions{})
			if storage.CodeOf(err) == storage.CodeKeyNotFound {
				return 0, storage.Errorf(storage.CodeInvalidPart, "CompleteUpload", "part %d was removed meanwhile", m.number)
			}
			if err != nil {
				return 0, err
			}
			r.open, r.hash = obj.Body, xxhash.New()
		}
		n, err := r.open.Read(p)
		r.moved()
		_, _ = r.hash.Write(p[:n])
		if err == nil || err != io.EOF {
			return n, err
		}
		_ = r.open.Close()
		r.open = nil
		if r.hash.Sum64() != m.hash {
			return 0, storage.Errorf(storage.CodeUnavailable, "CompleteUpload", "the store gave part %d back with other content", m.number)
		}
		r.rest = r.rest[1:]
		if n > 0 {
			return n, nil
		}
	}
	return 0, io.EOF
}

// Close implements io.Closer. It ends a Read that is under way.
func (r *composedReader) Close() error {
	r.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open != nil {
		_ = r.open.Close()
		r.open = nil
	}
	r.shut = true
	return nil
}

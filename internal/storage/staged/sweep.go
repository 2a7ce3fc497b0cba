package staged

import (
	"context"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

const (
	// Expiry is the age of its last part at which an upload is given up.
	Expiry = 7 * 24 * time.Hour
	// doneExpiry is how long it is known to what an upload was completed, and
	// how long what is left of an upload that was ended may stay.
	doneExpiry = 24 * time.Hour

	sweepEvery   = time.Hour
	sweepTimeout = 10 * time.Second
	maxSwept     = 100
)

// maybeSweep removes what is too old, unless that was looked at a short time
// ago. It fails in silence: the next one looks again.
func (u *Uploads) maybeSweep(ctx context.Context) {
	now := time.Now()
	last := u.swept.Load()
	if now.UnixNano()-last < int64(sweepEvery) || !u.swept.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	_ = u.sweepOpen(ctx, now)
	_ = u.sweepDone(ctx, now)
}

// sweepOpen looks at the oldest uploads.
func (u *Uploads) sweepOpen(ctx context.Context, now time.Time) error {
	page, err := u.store.List(ctx, storage.ListOptions{Prefix: openPrefix, Delimiter: "/", Reserved: true})
	if err != nil {
		return err
	}
	swept := 0
	for _, prefix := range page.Prefixes {
		id := strings.TrimSuffix(strings.TrimPrefix(prefix, openPrefix), "/")
		at, ok := begunAt(id)
		if !ok {
			continue
		}
		if now.Sub(at) < doneExpiry || swept == maxSwept {
			return nil
		}
		expired, err := u.expired(ctx, id, at, now)
		if err != nil {
			return err
		}
		if expired {
			if err := u.remove(ctx, id); err != nil {
				return err
			}
			swept++
		}
	}
	return nil
}

// expired reports whether the upload that began at the given time, a day ago or
// more, is to be removed.
func (u *Uploads) expired(ctx context.Context, id string, at, now time.Time) (bool, error) {
	there, err := storage.Has(ctx, u.store, manifestKey(id))
	if err != nil || !there {
		return err == nil, err
	}
	if now.Sub(at) < Expiry {
		return false, nil
	}
	markers, err := u.markers(ctx, id)
	for _, m := range markers {
		if now.Sub(time.Unix(0, m.at)) < Expiry {
			return false, err
		}
	}
	return err == nil, err
}

// sweepDone forgets uploads that were completed long ago.
func (u *Uploads) sweepDone(ctx context.Context, now time.Time) error {
	page, err := u.store.List(ctx, storage.ListOptions{Prefix: donePrefix, Reserved: true})
	if err != nil {
		return err
	}
	for _, o := range page.Objects {
		if !o.ModTime.IsZero() && now.Sub(o.ModTime) >= doneExpiry {
			if err := u.store.Delete(ctx, o.Key); err != nil {
				return err
			}
		}
	}
	return nil
}

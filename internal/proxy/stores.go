package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/storage"
)

// checkTimeout bounds how long a document waits for a store to say what it
// thinks of new credentials.
const checkTimeout = 5 * time.Second

// opener makes the store of a backend. It does no I/O that can hang.
type opener func(*muxconfig.Backend) (storage.Storage, error)

// store is the client of one backend, which lives as long as its settings stay.
type store struct {
	storage.Storage
	settings [sha256.Size]byte
	// refused says why the backend's newest settings are not in use.
	refused *muxconfig.MemberError
}

// stores are the clients of a document, by the uid of their backend.
type stores map[string]*store

// byName returns the stores under the names that doc's backends have.
func (s stores) byName(doc *muxconfig.Document) map[string]storage.Storage {
	named := make(map[string]storage.Storage, len(doc.Backends))
	for i := range doc.Backends {
		b := &doc.Backends[i]
		if one := s[b.UID]; one != nil {
			named[b.Name] = one.Storage
		}
	}
	return named
}

// anyRefused reports whether some backend's newest settings are not in use.
func (s stores) anyRefused() bool {
	for _, one := range s {
		if one.refused != nil {
			return true
		}
	}
	return false
}

// openStores makes the stores of doc. One of old whose settings did not change
// is used on; one whose new credentials the store refuses is used on as well,
// and says so. On error nothing is left open.
func openStores(ctx context.Context, doc *muxconfig.Document, old stores, open opener) (stores, error) {
	next := make(stores, len(doc.Backends))
	var fresh []*store
	var checks sync.WaitGroup
	refusals := make([]*muxconfig.MemberError, len(doc.Backends))
	for i := range doc.Backends {
		b := &doc.Backends[i]
		if b.Fallback != nil {
			continue // it is made of the others
		}
		settings, err := settingsOf(b)
		before := old[b.UID]
		if err == nil && before != nil && before.settings == settings {
			next[b.UID] = &store{Storage: before.Storage, settings: settings}
			continue
		}
		var opened storage.Storage
		if err == nil {
			opened, err = open(b)
		}
		if err != nil {
			checks.Wait()
			closeStores(fresh)
			return nil, fmt.Errorf("open backend %s: %w", b.Name, err)
		}
		next[b.UID] = &store{Storage: opened, settings: settings}
		fresh = append(fresh, next[b.UID])
		if checker, ok := opened.(storage.Checker); ok && before != nil {
			checks.Go(func() { refusals[i] = refusal(ctx, checker) })
		}
	}
	checks.Wait()
	for i, refused := range refusals {
		if refused != nil {
			uid := doc.Backends[i].UID
			closeStore(next[uid].Storage)
			next[uid] = &store{Storage: old[uid].Storage, settings: old[uid].settings, refused: refused}
		}
	}
	return next, nil
}

// settingsOf is a digest of what a store is made of: another one needs another
// client. The size of a store in memory is not part of it: a new one would be
// empty.
func settingsOf(b *muxconfig.Backend) ([sha256.Size]byte, error) {
	made := muxconfig.Backend{S3: b.S3, HTTP: b.HTTP, Bunny: b.Bunny, Swift: b.Swift, Azure: b.Azure, File: b.File}
	if b.Memory != nil {
		made.Memory = &muxconfig.Memory{}
	}
	data, err := json.Marshal(&made)
	return sha256.Sum256(data), err
}

// resize gives stores in memory the size that doc says.
func (s stores) resize(doc *muxconfig.Document) {
	for i := range doc.Backends {
		b := &doc.Backends[i]
		if b.Memory == nil {
			continue
		}
		if store, ok := s[b.UID].Storage.(interface{ Resize(sizeLimit int64) }); ok {
			store.Resize(b.Memory.SizeLimit)
		}
	}
}

// refusal asks a store about the credentials that it was opened with. Only a
// clear no counts: with a store that does not answer, the old ones are no
// better than the new.
func refusal(ctx context.Context, checker storage.Checker) *muxconfig.MemberError {
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, storage.CauseTimeout)
	defer cancel()
	err := checker.Check(ctx)
	switch code := storage.CodeOf(err); code {
	case storage.CodeAccessDenied, storage.CodeCredentialExpired:
		return &muxconfig.MemberError{Code: string(code), Message: "the store refused the new credentials; the ones before stay in use"}
	default:
		return nil
	}
}

// retired returns the stores of s that next does not use.
func (s stores) retired(next stores) []*store {
	var gone []*store
	for uid, one := range s {
		if after := next[uid]; after == nil || after.Storage != one.Storage {
			gone = append(gone, one)
		}
	}
	return gone
}

func closeStores(list []*store) {
	for _, one := range list {
		closeStore(one.Storage)
	}
}

package fallbacktest

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// Factory returns a store over candidates, which are bases without a prefix, in
// that order. The test ends it.
type Factory func(t *testing.T, candidates []storage.Storage) storage.Storage

// Options say which policy the stores have.
type Options struct {
	// FirstSuccess: writes go to the first that takes them, not to all.
	FirstSuccess bool
	// Parallel: reads ask all at once, so that any of several answers may come.
	Parallel bool
	// DeleteAll: a delete needs every candidate.
	DeleteAll bool
	// ListPartial: a list may lack the keys of candidates that fail.
	ListPartial bool
}

// Run checks the stores that open returns, one per check.
func Run(t *testing.T, open Factory, opts Options) {
	for _, c := range []struct {
		name string
		run  func(*suite)
	}{
		{"a read takes what the first candidate holds", firstAnswers},
		{"a read looks further for a missing key", missingFallsThrough},
		{"a read passes a candidate that fails", failureFallsThrough},
		{"a key that nobody holds is not found", nobodyHolds},
		{"an outage is no missing key", outageIsNotMissing},
		{"a refusal is an answer", refusalAnswers},
		{"a write goes where it must", writeGoes},
		{"a write that misses somebody", writeMisses},
		{"a write that nobody takes", writeFails},
		{"a delete goes to all", deleteGoes},
		{"a delete that misses somebody", deleteMisses},
		{"a list is the union", listUnion},
		{"a list that lacks somebody", listLacks},
		{"a caller who has left", callerLeft},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &suite{T: t, Options: opts}
			var candidates []storage.Storage
			for range 3 {
				f := &Faulty{Storage: memory.New(0)}
				s.candidates = append(s.candidates, f)
				candidates = append(candidates, f)
			}
			s.store = open(t, candidates)
			c.run(s)
		})
	}
}

// Faulty is a store whose calls can be made to fail.
type Faulty struct {
	storage.Storage
	failure atomic.Pointer[error]
}

// Fail makes err the answer to every call, nil the store's own.
func (f *Faulty) Fail(err error) { f.failure.Store(&err) }

func (f *Faulty) err() error {
	if err := f.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// GetStream implements storage.Storage.
func (f *Faulty) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	return f.Storage.GetStream(ctx, key, opts)
}

// Stat implements storage.Storage.
func (f *Faulty) Stat(ctx context.Context, key string, opts storage.StatOptions) (storage.Info, error) {
	if err := f.err(); err != nil {
		return storage.Info{}, err
	}
	return f.Storage.Stat(ctx, key, opts)
}

// SetStream implements storage.Storage.
func (f *Faulty) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	if err := f.err(); err != nil {
		return storage.Info{}, err
	}
	return f.Storage.SetStream(ctx, key, body, opts)
}

// Delete implements storage.Storage.
func (f *Faulty) Delete(ctx context.Context, key string) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Storage.Delete(ctx, key)
}

// List implements storage.Storage.
func (f *Faulty) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	if err := f.err(); err != nil {
		return storage.ListPage{}, err
	}
	return f.Storage.List(ctx, opts)
}

// suite is what one check works with.
type suite struct {
	*testing.T
	Options
	candidates []*Faulty
	store      storage.Storage
}

var errDown = &storage.Error{Code: storage.CodeUnavailable, Status: http.StatusServiceUnavailable, Message: "the candidate is down"}

func (s *suite) put(i int, key, data string) {
	s.Helper()
	if _, err := storage.Set(s.Context(), s.candidates[i].Storage, key, []byte(data), storage.SetOptions{}); err != nil {
		s.Fatal(err)
	}
}

// holders returns which candidates hold key.
func (s *suite) holders(key string) (list []int) {
	s.Helper()
	for i, c := range s.candidates {
		found, err := storage.Has(s.Context(), c.Storage, key)
		if err != nil {
			s.Fatal(err)
		}
		if found {
			list = append(list, i)
		}
	}
	return list
}

func (s *suite) wantHolders(key string, want ...int) {
	s.Helper()
	if got := s.holders(key); !slices.Equal(got, want) {
		s.Errorf("%s is held by %v, want %v", key, got, want)
	}
}

func (s *suite) wantGet(key, want string) {
	s.Helper()
	data, _, err := storage.Get(s.Context(), s.store, key)
	if err != nil || string(data) != want {
		s.Errorf("got %q, %v, want %q", data, err, want)
	}
}

func (s *suite) wantCode(err error, code storage.Code) {
	s.Helper()
	if storage.CodeOf(err) != code {
		s.Errorf("got %v, want %q", err, code)
	}
}

func (s *suite) get(key string) error {
	_, _, err := storage.Get(s.Context(), s.store, key)
	return err
}

func (s *suite) set(key string) error {
	_, err := storage.Set(s.Context(), s.store, key, []byte("new"), storage.SetOptions{})
	return err
}

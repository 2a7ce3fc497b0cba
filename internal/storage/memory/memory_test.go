package memory

import (
	"errors"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	storagetest.Run(t, func(*testing.T) storage.Storage { return New(0) }, storagetest.Recorded(t, "memory", storagetest.Options{Reopen: reopen}))
}

func TestMemoryUnderALimitKeepsTheContract(t *testing.T) {
	var last *Storage
	storagetest.Run(t, func(*testing.T) storage.Storage {
		last = New(160 << 20) // ten parts of 5 MiB, and the object that they become
		return last.Handle()
	}, storagetest.Options{Reopen: reopen, Debris: func(*testing.T, storage.Storage) []string {
		if want := last.objects.total(); last.objects.used != want {
			return []string{"reserved bytes"}
		}
		return nil
	}})
}

func reopen(_ *testing.T, s storage.Storage) storage.Storage { return s.(*Storage).Handle() }

// total is what used must be when no write is under way.
func (s *objects) total() int64 {
	var n int64
	for _, o := range s.byKey {
		n += o.cost
	}
	return n
}

func TestSizeLimitIsHeld(t *testing.T) {
	ctx := t.Context()
	s := New(1000)
	set := func(key string, size int, promised int64) error {
		_, err := s.SetStream(ctx, key, storage.Stream(strings.NewReader(strings.Repeat("x", size)), promised), storage.SetOptions{})
		return err
	}
	if err := set("a", 600, 600); err != nil {
		t.Fatal(err)
	}
	for _, promised := range []int64{600, -1} {
		if err := set("b", 600, promised); !errors.Is(err, storage.ErrNoSpace) {
			t.Errorf("storing over the limit, promised %d: %v", promised, err)
		}
		if err := set("a", 600, promised); !errors.Is(err, storage.ErrNoSpace) {
			t.Errorf("an overwrite needs room for both, promised %d: %v", promised, err)
		}
	}
	if _, err := s.SetPartial(ctx, "a", 900, storage.Bytes([]byte(strings.Repeat("y", 200)))); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("extending over the limit: %v", err)
	}
	if _, err := s.SetPartial(ctx, "a", 1<<62, storage.Bytes([]byte("y"))); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("extending beyond any limit: %v", err)
	}
	if _, err := s.SetStream(ctx, "c", storage.Bytes(nil), storage.SetOptions{Metadata: map[string]string{"k": strings.Repeat("v", 500)}}); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("metadata over the limit: %v", err)
	}
	if got, _, err := storage.Get(ctx, s, "a"); err != nil || len(got) != 600 {
		t.Errorf("after refused writes the object has %d bytes, %v", len(got), err)
	}
	if err := s.Delete(ctx, "a"); err != nil {
		t.Fatal(err)
	}
	if s.objects.used != 0 {
		t.Errorf("an empty store uses %d bytes", s.objects.used)
	}
	if err := set("b", 900, 900); err != nil {
		t.Errorf("storing after making room: %v", err)
	}
}

func TestResizeChangesTheLimitAndKeepsWhatIsStored(t *testing.T) {
	ctx := t.Context()
	s := New(10)
	set := func(key string) error {
		_, err := storage.Set(ctx, s, key, []byte("12345678"), storage.SetOptions{})
		return err
	}
	if err := set("a"); err != nil {
		t.Fatal(err)
	}
	s.Resize(20)
	if err := set("b"); err != nil {
		t.Errorf("after the limit was raised: %v", err)
	}
	s.Resize(5)
	if got, _, err := storage.Get(ctx, s, "b"); err != nil || len(got) != 8 {
		t.Errorf("after the limit was lowered, %d bytes, %v", len(got), err)
	}
	if err := set("b"); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("a write over the lowered limit: %v", err)
	}
}

func TestHandlesShareObjects(t *testing.T) {
	ctx := t.Context()
	a := New(0)
	b := a.Handle()
	if _, err := storage.Set(ctx, a, "key", []byte("x"), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := storage.Get(ctx, b, "key"); err != nil || string(got) != "x" {
		t.Errorf("the other handle reads %q, %v", got, err)
	}
}

func TestETagDependsOnContentOnly(t *testing.T) {
	ctx := t.Context()
	tag := func(key, data string) string {
		info, err := storage.Set(ctx, New(0), key, []byte(data), storage.SetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return info.ETag
	}
	if tag("a", "x") != tag("b", "x") || tag("a", "x") == tag("a", "y") {
		t.Error("etags do not follow the content")
	}
}

func TestResizeMovesTheLimitAndKeepsWhatIsThere(t *testing.T) {
	s := New(100 << 10)
	if _, err := storage.Set(t.Context(), s, "old", make([]byte, 90<<10), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Resize(10 << 10)
	if _, err := storage.Set(t.Context(), s, "new", make([]byte, 1<<10), storage.SetOptions{}); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("storing over the smaller limit gave %v", err)
	}
	if has, err := storage.Has(t.Context(), s, "old"); !has || err != nil {
		t.Errorf("what was there is gone (%v)", err)
	}
	s.Resize(1 << 20)
	if _, err := storage.Set(t.Context(), s, "new", make([]byte, 1<<10), storage.SetOptions{}); err != nil {
		t.Errorf("storing under the larger limit gave %v", err)
	}
}

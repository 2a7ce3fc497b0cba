package staged_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/file"
	"github.com/suaveplan/storagemux/internal/storage/memory"
	"github.com/suaveplan/storagemux/internal/storage/staged"
)

// store is what has uploads and lists what they keep.
type store interface {
	storage.Storage
	storage.Multipart
}

func begin(t *testing.T, s store, key string) string {
	t.Helper()
	id, err := s.CreateUpload(t.Context(), key, storage.SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func add(t *testing.T, s store, key, id string, number int, data []byte) storage.Part {
	t.Helper()
	part, err := s.UploadPart(t.Context(), key, id, number, storage.Bytes(data), storage.SetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return part
}

func kept(t *testing.T, s store) (keys []string) {
	t.Helper()
	page, err := s.List(t.Context(), storage.ListOptions{Prefix: storage.ReservedParts, Reserved: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Objects {
		keys = append(keys, strings.TrimPrefix(o.Key, storage.ReservedParts))
	}
	return keys
}

func TestUploadsThatNobodyEndsAreRemovedAWeekAfterTheirLastPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(0)
		const day = 24 * time.Hour
		forgotten, busy := begin(t, s, "forgotten"), begin(t, s, "busy")
		add(t, s, "forgotten", forgotten, 1, []byte("content"))
		time.Sleep(5 * day)
		add(t, s, "busy", busy, 1, []byte("content"))
		time.Sleep(staged.Expiry - 5*day)
		fresh := begin(t, s, "fresh")
		if _, _, err := s.ListParts(t.Context(), "forgotten", forgotten, 0, 10); storage.CodeOf(err) != storage.CodeUploadNotFound {
			t.Errorf("a forgotten upload: %v", err)
		}
		for _, key := range kept(t, s) {
			if !strings.HasPrefix(key, "open/"+busy) && !strings.HasPrefix(key, "open/"+fresh) {
				t.Errorf("%q is left", key)
			}
		}
		if parts, _, err := s.ListParts(t.Context(), "busy", busy, 0, 10); err != nil || len(parts) != 1 {
			t.Errorf("a busy upload has the parts %+v, %v", parts, err)
		}
	})
}

func TestWhatACrashLeftOfAnUploadIsRemovedAfterADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(0)
		id := begin(t, s, "key")
		add(t, s, "key", id, 1, []byte("content"))
		if err := s.Delete(t.Context(), storage.ReservedParts+"open/"+id+"/upload"); err != nil {
			t.Fatal(err)
		}
		other := begin(t, s, "other")
		if len(kept(t, s)) != 3 {
			t.Errorf("at first there are %q", kept(t, s))
		}
		time.Sleep(25 * time.Hour)
		if err := s.AbortUpload(t.Context(), "other", other); err != nil {
			t.Fatal(err)
		}
		begin(t, s, "third")
		if left := kept(t, s); len(left) != 1 {
			t.Errorf("a day later there are %q", left)
		}
	})
}

func TestACompletedUploadIsKnownForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(0)
		id := begin(t, s, "key")
		part := add(t, s, "key", id, 1, []byte("content"))
		complete := func() error {
			_, err := s.CompleteUpload(t.Context(), "key", id, []storage.Part{part}, storage.SetOptions{})
			return err
		}
		for _, wait := range []time.Duration{0, time.Minute, 22 * time.Hour} {
			time.Sleep(wait)
			begin(t, s, "another")
			if err := complete(); err != nil {
				t.Errorf("after another %s: %v", wait, err)
			}
		}
		time.Sleep(2 * time.Hour)
		begin(t, s, "another")
		if err := complete(); storage.CodeOf(err) != storage.CodeUploadNotFound {
			t.Errorf("after a day: %v, want UPLOAD_NOT_FOUND", err)
		}
	})
}

func TestOldUploadsAreLookedForOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memory.New(0)
		counted := &counting{Storage: inner}
		u := staged.New(counted, nil)
		for range 10 {
			if _, err := u.CreateUpload(t.Context(), "key", storage.SetOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Minute)
		}
		if counted.lists != 2*4 {
			t.Errorf("%d lists in three hours, want 2 for each of 4 looks", counted.lists)
		}
	})
}

type counting struct {
	storage.Storage
	lists int
}

func (c *counting) List(ctx context.Context, opts storage.ListOptions) (storage.ListPage, error) {
	c.lists++
	return c.Storage.List(ctx, opts)
}

// ending is a body during which something else happens.
type ending struct {
	io.Reader
	once sync.Once
	do   func()
}

func (e *ending) Read(p []byte) (int, error) {
	e.once.Do(e.do)
	return e.Reader.Read(p)
}

func TestAPartThatIsUnderWayWhenItsUploadEndsLeavesNothing(t *testing.T) {
	s := memory.New(0)
	for name, end := range map[string]func(other store, id string, first storage.Part) error{
		"aborted": func(other store, id string, _ storage.Part) error { return other.AbortUpload(t.Context(), "key", id) },
		"completed": func(other store, id string, first storage.Part) error {
			_, err := other.CompleteUpload(t.Context(), "key", id, []storage.Part{first}, storage.SetOptions{})
			return err
		},
	} {
		id := begin(t, s, "key")
		first := add(t, s, "key", id, 1, []byte("first"))
		body := &ending{Reader: strings.NewReader("second"), do: func() {
			if err := end(s.Handle(), id, first); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}}
		_, err := s.UploadPart(t.Context(), "key", id, 2, storage.Stream(body, 6), storage.SetOptions{})
		if storage.CodeOf(err) != storage.CodeUploadNotFound {
			t.Errorf("%s: got %v, want UPLOAD_NOT_FOUND", name, err)
		}
		for _, key := range kept(t, s) {
			if strings.HasPrefix(key, "open/") {
				t.Errorf("%s: %q is left", name, key)
			}
		}
	}
}

func TestOfManyWhoSendOnePartOneCounts(t *testing.T) {
	s := memory.New(0)
	id := begin(t, s, "key")
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			if _, err := s.Handle().UploadPart(t.Context(), "key", id, 1, storage.Bytes(bytes.Repeat([]byte{byte('a' + i)}, 100)), storage.SetOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	parts, more, err := s.ListParts(t.Context(), "key", id, 0, 10)
	if err != nil || more || len(parts) != 1 {
		t.Fatalf("the parts are %+v, %v", parts, err)
	}
	if _, err := s.CompleteUpload(t.Context(), "key", id, parts, storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	if data, _, err := storage.Get(t.Context(), s, "key"); err != nil || len(data) != 100 || strings.Trim(string(data), string(data[:1])) != "" {
		t.Errorf("the object is %q, %v", data, err)
	}
}

func TestAPartThatChangedInTheStoreIsNotMadePartOfAnObject(t *testing.T) {
	s := memory.New(0)
	id := begin(t, s, "key")
	part := add(t, s, "key", id, 1, []byte("content"))
	for _, key := range kept(t, s) {
		if strings.Contains(key, "/d/") {
			if _, err := storage.Set(t.Context(), s, storage.ReservedParts+key, []byte("c0ntent"), storage.SetOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := s.CompleteUpload(t.Context(), "key", id, []storage.Part{part}, storage.SetOptions{})
	if storage.CodeOf(err) != storage.CodeUnavailable {
		t.Errorf("got %v, want UNAVAILABLE", err)
	}
	if there, err := storage.Has(t.Context(), s, "key"); there || err != nil {
		t.Errorf("the object is there: %t, %v", there, err)
	}
}

func TestCompletingHoldsNoPartInMemory(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "storagemux-test-")
	if err != nil {
		dir = t.TempDir()
	}
	defer os.RemoveAll(dir)
	s, err := file.New(file.Config{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := begin(t, s, "key")
	var parts []storage.Part
	for i := range 8 {
		parts = append(parts, add(t, s, "key", id, i+1, make([]byte, 8<<20)))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	info, err := s.CompleteUpload(t.Context(), "key", id, parts, storage.SetOptions{})
	runtime.ReadMemStats(&after)
	if err != nil || info.Size != 64<<20 {
		t.Fatalf("%+v, %v", info, err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2<<20 {
		t.Errorf("%d bytes were allocated for 64 MiB", allocated)
	}
}

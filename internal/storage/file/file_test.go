package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
)

// tempDir is t.TempDir in memory where there is room: what is tested here is
// not the speed of a disk.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "storagemux-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func open(t testing.TB, path string) *Storage {
	t.Helper()
	s, err := New(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func set(t testing.TB, s storage.Storage, key, data string) {
	t.Helper()
	if _, err := storage.Set(t.Context(), s, key, []byte(data), storage.SetOptions{}); err != nil {
		t.Fatalf("storing %q: %v", key, err)
	}
}

func get(t testing.TB, s storage.Storage, key string) string {
	t.Helper()
	data, _, err := storage.Get(t.Context(), s, key)
	if err != nil {
		t.Errorf("reading %q: %v", key, err)
	}
	return string(data)
}

func keys(t testing.TB, s storage.Storage) (all []string) {
	t.Helper()
	page, err := s.List(t.Context(), storage.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Objects {
		all = append(all, o.Key)
	}
	return all
}

func debris(_ *testing.T, s storage.Storage) []string {
	entries, err := os.ReadDir(filepath.Join(s.(*Storage).volume.path, tmpDir))
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// reopen opens the folder once more, as another process does.
func reopen(t *testing.T, s storage.Storage) storage.Storage {
	v := &s.(*Storage).volume
	other := newStorage(v.path)
	other.volume.noAttribute = v.noAttribute
	return other
}

func TestFileKeepsTheContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Storage { return open(t, tempDir(t)) }, storagetest.Recorded(t, "file", storagetest.Options{Debris: debris, Reopen: reopen}))
}

func TestFileWithoutExtendedAttributesKeepsTheContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		s := newStorage(tempDir(t))
		s.volume.noAttribute = true
		if _, _, err := s.volume.open(); err != nil {
			t.Fatal(err)
		}
		if c := s.Capabilities(); c.Metadata || c.ConditionalWrite || c.Identity != storage.IdentityWeak {
			t.Errorf("capabilities %+v", c)
		}
		return s
	}, storagetest.Options{Debris: debris, ListKeys: 300, Reopen: reopen})
}

func TestObjectsAreFilesWhereTheirKeysSay(t *testing.T) {
	dir := tempDir(t)
	s := open(t, dir)
	set(t, s, "photos/2026/a b.jpg", "picture")
	if data, err := os.ReadFile(filepath.Join(dir, "photos/2026/a b.jpg")); err != nil || string(data) != "picture" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "photos/foreign.txt"), []byte("by hand"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "photos/foreign.txt"); got != "by hand" {
		t.Errorf("a file put there by hand reads %q", got)
	}
	if got := keys(t, s); !slices.Equal(got, []string{"photos/2026/a b.jpg", "photos/foreign.txt"}) {
		t.Errorf("listed %q", got)
	}
}

func TestWhatSomebodyElseChangedHasAWeakTagAndNoMetadata(t *testing.T) {
	dir := tempDir(t)
	s := open(t, dir)
	info, err := storage.Set(t.Context(), s, "key", []byte("ours"), storage.SetOptions{Metadata: map[string]string{"a": "b"}})
	if err != nil || strings.HasPrefix(info.ETag, "W/") {
		t.Fatalf("etag %q, %v", info.ETag, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	stat, err := s.Stat(t.Context(), "key", storage.StatOptions{})
	if err != nil || !strings.HasPrefix(stat.ETag, "W/") || stat.Metadata != nil || stat.Size != 6 {
		t.Errorf("after a change by hand: %+v, %v", stat, err)
	}
}

func TestNothingEscapesTheRoot(t *testing.T) {
	dir := tempDir(t)
	outside, root := filepath.Join(dir, "outside"), filepath.Join(dir, "root")
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := open(t, root)
	for name, target := range map[string]string{"dir": outside, "up": "../outside", "file": secret, "rel": "../outside/secret", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"dir/secret", "up/secret", "file", "rel", "../outside/secret", "./../outside/secret", "/../outside/secret", secret} {
		if _, err := s.Stat(t.Context(), key, storage.StatOptions{}); !errors.Is(err, storage.ErrKeyNotFound) {
			t.Errorf("stat of %q: %v, want not found", key, err)
		}
		_, _ = storage.Set(t.Context(), s, key, []byte("overwritten"), storage.SetOptions{})
		_ = s.Delete(t.Context(), key)
	}
	if _, err := storage.Set(t.Context(), s, "dir/new", []byte("x"), storage.SetOptions{}); storage.Classify(err) != storage.ClassSemantic {
		t.Errorf("storing below a link that leads out: %v", err)
	}
	if got := keys(t, s); len(got) > 0 {
		t.Errorf("links are listed: %q", got)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside the root there is now %v, %v", entries, err)
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "secret" {
		t.Errorf("the file outside holds %q, %v", data, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("beside the root there is %v, %v", entries, err)
	}
}

func TestLeftoversOfDeadWritersAreRemovedAndThoseOfLivingOnesKept(t *testing.T) {
	dir := tempDir(t)
	s := open(t, dir)
	root, _, err := s.volume.open()
	if err != nil {
		t.Fatal(err)
	}
	living, err := s.newTemporary(root, "SetStream")
	if err != nil {
		t.Fatal(err)
	}
	defer living.discard()
	dead := filepath.Join(dir, tmpDir, "dead")
	if err := os.WriteFile(dead, []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file of a dead writer: %v", err)
	}
	if _, err := root.Stat(living.name); err != nil {
		t.Errorf("the file of a living writer: %v", err)
	}
}

func TestAMissingRootIsATransientErrorUntilItComes(t *testing.T) {
	parent := filepath.Join(tempDir(t), "mount")
	s := open(t, filepath.Join(parent, "root"))
	want := func(doing string) {
		t.Helper()
		_, werr := storage.Set(t.Context(), s, "key", []byte("x"), storage.SetOptions{})
		_, serr := s.Stat(t.Context(), "key", storage.StatOptions{})
		_, lerr := s.List(t.Context(), storage.ListOptions{})
		for _, err := range []error{serr, lerr, werr, s.Delete(t.Context(), "key"), s.Check(t.Context())} {
			if storage.CodeOf(err) != storage.CodeUnavailable || storage.Classify(err) != storage.ClassTransient {
				t.Errorf("%s: got %v, want a transient UNAVAILABLE", doing, err)
			}
		}
	}
	want("before the parent exists")
	if err := os.Mkdir(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	set(t, s, "key", "x")
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.Rename(parent, parent+"-gone"); err != nil {
		t.Fatal(err)
	}
	want("after the root went away")
	if err := os.Rename(parent+"-gone", parent); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s, "key"); got != "x" {
		t.Errorf("after it came back, the key holds %q", got)
	}
}

func TestTwoProcessesMayShareAFolder(t *testing.T) {
	dir := tempDir(t)
	stores := []*Storage{open(t, dir), open(t, dir)}
	ctx := t.Context()
	set(t, stores[0], "counter", "")
	set(t, stores[0], "slots", "........")
	var all sync.WaitGroup
	for i := range 8 {
		s := stores[i%2]
		all.Go(func() {
			if _, err := s.SetPartial(ctx, "slots", int64(i), storage.Bytes([]byte{byte('0' + i)})); err != nil {
				t.Error(err)
			}
			for {
				data, info, err := storage.Get(ctx, s, "counter")
				if err != nil {
					t.Error(err)
					return
				}
				_, err = storage.Set(ctx, s, "counter", append(data, byte('0'+i)), storage.SetOptions{Conditions: storage.Conditions{IfMatch: []string{info.ETag}}})
				if err == nil {
					return
				}
				if !errors.Is(err, storage.ErrPreconditionFailed) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if got := get(t, stores[1], "slots"); got != "01234567" {
		t.Errorf("partial writes from two processes gave %q", got)
	}
	if got := get(t, stores[1], "counter"); len(got) != 8 {
		t.Errorf("8 conditional updates from two processes gave %q", got)
	}
}

func TestKeysAboveAndBelowEachOtherSurviveConcurrentWriters(t *testing.T) {
	dir := tempDir(t)
	stores := []*Storage{open(t, dir), open(t, dir)}
	names := []string{"a", "a/b", "a/b/c", "a/d"}
	var all sync.WaitGroup
	for i, key := range slices.Concat(names, names) {
		s := stores[i%2]
		all.Go(func() {
			for n := range 15 {
				if _, err := storage.Set(context.Background(), s, key, []byte(key), storage.SetOptions{}); err != nil {
					t.Errorf("storing %q: %v", key, err)
				}
				if n < 14 {
					if err := s.Delete(context.Background(), key); err != nil {
						t.Errorf("deleting %q: %v", key, err)
					}
				}
			}
		})
	}
	all.Wait()
	for _, key := range names {
		set(t, stores[0], key, key)
	}
	for _, key := range names {
		if got := get(t, stores[1], key); got != key {
			t.Errorf("%q holds %q", key, got)
		}
	}
	if got := keys(t, stores[1]); !slices.Equal(got, names) {
		t.Errorf("listed %q", got)
	}
}

func TestMetadataThatDoesNotFitIsTooLargeAndNotNoSpace(t *testing.T) {
	s := open(t, tempDir(t))
	_, err := storage.Set(t.Context(), s, "key", []byte("x"), storage.SetOptions{Metadata: map[string]string{"a": strings.Repeat("x", 100_000)}})
	if storage.CodeOf(err) != storage.CodeTooLarge {
		t.Errorf("got %v, want TOO_LARGE", err)
	}
	if left := debris(t, s); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestAListedPageReadsOnlyFoldersOnItsWay(t *testing.T) {
	dir := tempDir(t)
	s := open(t, dir)
	set(t, s, "a/1", "")
	set(t, s, "z/1", "")
	root, _, err := s.volume.open()
	if err != nil {
		t.Fatal(err)
	}
	walk := &cursor{root: root, top: root, dir: "."}
	defer walk.close()
	children, err := expand(walk, node{key: "a/", dir: "a"}, "a/", "")
	if err != nil || len(children) != 1 || children[0].key != "a/1" {
		t.Errorf("expanding a/: %+v, %v", children, err)
	}
	children, err = expand(walk, node{dir: "."}, "b", "")
	if err != nil || len(children) != 1 || children[0].key != "z/" {
		t.Errorf("expanding the root from b on: %+v, %v", children, err)
	}
	if children, err = expand(walk, node{dir: "."}, "", "a/x"); err != nil || len(children) != 1 || children[0].key != "a/" {
		t.Errorf("expanding the root below the prefix a/x: %+v, %v", children, err)
	}
}

package scratch

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
)

func keep(t *testing.T, space Space, body storage.Body) (*Content, error) {
	t.Helper()
	r, err := storage.OpenBody(t.Context(), "SetStream", body, storage.Checksums{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return Keep(space, "SetStream", r, body.Size())
}

func TestAContentIsKeptWholeWithItsDigest(t *testing.T) {
	dir := t.TempDir()
	space := Files(dir, 1<<20)
	for _, data := range [][]byte{{}, []byte("x"), bytes.Repeat([]byte("0123456789abcdef"), 10_000)} {
		for _, size := range []int64{int64(len(data)), -1} {
			kept, err := keep(t, space, storage.Stream(bytes.NewReader(data), size))
			if err != nil {
				t.Fatalf("%d bytes, said to be %d: %v", len(data), size, err)
			}
			sum := sha256.Sum256(data)
			if kept.Size != int64(len(data)) || !bytes.Equal(kept.SHA256, sum[:]) {
				t.Errorf("kept %d bytes of SHA-256 %x, want %d of %x", kept.Size, kept.SHA256, len(data), sum)
			}
			for range 2 {
				if got, err := io.ReadAll(kept.Reader()); err != nil || !bytes.Equal(got, data) {
					t.Errorf("read %d of %d bytes, %v", len(got), len(data), err)
				}
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("a crash would leave %v behind", left)
			}
			if err := kept.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestRoomIsSharedAndGivenBack(t *testing.T) {
	space := Files(t.TempDir(), 10)
	first, err := keep(t, space, storage.Bytes([]byte("123456")))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{5, -1} {
		if _, err := keep(t, space, storage.Stream(strings.NewReader("12345"), size)); storage.CodeOf(err) != storage.CodeNoSpace {
			t.Errorf("a fifth byte where there is room for four, said to be %d: %v", size, err)
		}
	}
	second, err := keep(t, space, storage.Bytes([]byte("1234")))
	if err != nil {
		t.Errorf("what was refused took room: %v", err)
	} else {
		_ = second.Close()
	}
	_ = first.Close()
	all, err := keep(t, space, storage.Bytes([]byte("1234567890")))
	if err != nil {
		t.Fatalf("after all was closed: %v", err)
	}
	_ = all.Close()
}

func TestABodyThatFailsSaysWhyAndTakesNoRoom(t *testing.T) {
	broken := errors.New("broken")
	space := Files(t.TempDir(), 10)
	for name, body := range map[string]storage.Body{
		"an error":       storage.Stream(io.MultiReader(strings.NewReader("12345678"), failing{broken}), -1),
		"one byte short": storage.Stream(strings.NewReader("12345678"), 9),
	} {
		_, err := keep(t, space, body)
		if storage.CodeOf(err) != storage.CodeInvalidBody || name == "an error" && !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
		kept, err := keep(t, space, storage.Bytes([]byte("1234567890")))
		if err != nil {
			t.Fatalf("after %s: %v", name, err)
		}
		_ = kept.Close()
	}
}

func TestAFolderThatIsMissingIsNoSpace(t *testing.T) {
	_, err := keep(t, Files(filepath.Join(t.TempDir(), "missing"), 10), storage.Bytes([]byte("x")))
	if storage.CodeOf(err) != storage.CodeNoSpace || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want NO_SPACE because there is no such folder", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

package file

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/suaveplan/storagemux/internal/storage"
)

func TestAFullDiskIsNoSpaceAndKeepsTheOldObject(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		if os.Geteuid() == 0 {
			t.Fatalf("mounting a small disk: %v", err)
		}
		t.Skipf("a small disk can be mounted by root only: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmounting: %v", err)
		}
	}()
	s := open(t, dir)
	defer s.Close()
	set(t, s, "key", "old")
	for _, size := range []int64{2 << 20, -1} {
		_, err := s.SetStream(t.Context(), "key", storage.Stream(strings.NewReader(strings.Repeat("x", 2<<20)), size), storage.SetOptions{})
		if !errors.Is(err, storage.ErrNoSpace) {
			t.Errorf("storing 2 MiB on a disk of 1: %v", err)
		}
	}
	if got := get(t, s, "key"); got != "old" {
		t.Errorf("the old object holds %q", got)
	}
	if left := debris(t, s); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if _, err := s.SetPartial(t.Context(), "key", 0, storage.Bytes([]byte(strings.Repeat("x", 2<<20)))); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("a partial write of 2 MiB: %v", err)
	}
	set(t, s, "other", "still room for this")
}

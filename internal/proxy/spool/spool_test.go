package spool

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/suaveplan/storagemux/internal/muxengine"
)

func newSpool(t *testing.T, memory, disk int64) *Spool {
	t.Helper()
	s, err := New(Options{Memory: memory, Disk: disk, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t *testing.T, s *Spool, size int64) muxengine.Spooled {
	t.Helper()
	body, err := s.Open(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = body.Close() })
	return body
}

func content(n int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

func TestABodyReadsBackFromMemoryAndDisk(t *testing.T) {
	for _, size := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 5*chunkSize + 17} {
		s := newSpool(t, 2*chunkSize, 10*chunkSize)
		body, data := open(t, s, -1), content(size)
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 10_007)
			if wrote, err := body.Write(rest[:n]); wrote != n || err != nil {
				t.Fatalf("Write of %d gave %d, %v", n, wrote, err)
			}
			rest = rest[n:]
		}
		got, err := io.ReadAll(io.NewSectionReader(body, 0, int64(size)))
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes read back as %d, equal %t, error %v", size, len(got), bytes.Equal(got, data), err)
		}
		for _, off := range []int{0, size / 2, size - 1} {
			if off < 0 {
				continue
			}
			part := make([]byte, 3*chunkSize)
			n, err := body.ReadAt(part, int64(off))
			if n != min(len(part), size-off) || !bytes.Equal(part[:n], data[off:off+n]) || (n < len(part)) != errors.Is(err, io.EOF) {
				t.Errorf("ReadAt(%d) of %d bytes gave %d, %v", off, size, n, err)
			}
		}
	}
}

func TestWithoutRoomABodyIsRefusedAndWhatWasKeptStays(t *testing.T) {
	s := newSpool(t, chunkSize, chunkSize)
	body, data := open(t, s, -1), content(2*chunkSize)
	if _, err := body.Write(data); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if n, err := body.Write([]byte{1}); n != 0 || !errors.Is(err, muxengine.ErrSpoolFull) {
			t.Fatalf("Write beyond the room gave %d, %v", n, err)
		}
	}
	if _, err := s.Open(1); !errors.Is(err, muxengine.ErrSpoolFull) {
		t.Errorf("Open without room gave %v", err)
	}
	got := make([]byte, len(data))
	if _, err := body.ReadAt(got, 0); err != nil || !bytes.Equal(got, data) {
		t.Errorf("what was kept does not read back: %v", err)
	}
	if err := body.Close(); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u.Memory != 0 || u.Disk != 0 || u.Refused != 2 {
		t.Errorf("after Close the spool holds %+v", u)
	}
	if _, err := s.Open(2 * chunkSize); err != nil {
		t.Errorf("Open after Close gave %v", err)
	}
}

func TestFilesHaveNoNameWhileTheyAreUsed(t *testing.T) {
	dir := t.TempDir()
	s, err := New(Options{Disk: 1 << 20, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	body := open(t, s, -1)
	if _, err := body.Write(content(chunkSize)); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

func TestNewRefusesAFolderThatCannotHoldFiles(t *testing.T) {
	if _, err := New(Options{Disk: 1, Dir: t.TempDir() + "/missing"}); err == nil {
		t.Error("New took a folder that does not exist")
	}
	if _, err := New(Options{Memory: 1 << 20}); err != nil {
		t.Errorf("New without a folder gave %v", err)
	}
}

func TestReadersFollowAWriter(t *testing.T) {
	s := newSpool(t, 3*chunkSize, 1<<20)
	body, data := open(t, s, -1), content(7*chunkSize)
	written := make(chan int, len(data)/1000+1)
	var readers sync.WaitGroup
	readers.Go(func() {
		for n := range written {
			got := make([]byte, n)
			if _, err := body.ReadAt(got, 0); err != nil || !bytes.Equal(got, data[:n]) {
				t.Errorf("the first %d bytes do not read back: %v", n, err)
				return
			}
		}
	})
	for off := 0; off < len(data); {
		n := min(50_000, len(data)-off)
		if _, err := body.Write(data[off : off+n]); err != nil {
			t.Fatal(err)
		}
		off += n
		written <- off
	}
	close(written)
	readers.Wait()
}

func TestMemoryIsUsedAgainAndGoesBackToTheSystem(t *testing.T) {
	s, err := New(Options{Memory: 4 * slabSize})
	if err != nil {
		t.Fatal(err)
	}
	var before, during runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 3 {
		b, err := s.Open(3 * slabSize)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Write(bytes.Repeat([]byte("x"), 3*slabSize)); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&during)
		if grown := int64(during.HeapInuse) - int64(before.HeapInuse); runtime.GOOS == "linux" && grown > slabSize {
			t.Errorf("the heap has grown by %d bytes", grown)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.chunks.free); n != 3*slabSize/chunkSize {
		t.Errorf("%d chunks have been taken from the system", n)
	}
	s.chunks.release()
	for _, c := range s.chunks.free {
		if runtime.GOOS == "linux" && *c != (chunk{}) {
			t.Fatal("a page is still there")
		}
	}
	if s.chunks.idle != nil {
		t.Error("it would look again, with nothing to give back")
	}
}

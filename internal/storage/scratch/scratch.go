package scratch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync/atomic"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Space is bounded room for contents.
type Space interface {
	// Open makes room for a content of size bytes, or of a size that is not
	// known if that is negative.
	Open(size int64) (Room, error)
}

// Room holds one content. Write keeps all of p or fails. Close frees it.
type Room interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// Content is a whole content.
type Content struct {
	Size   int64
	SHA256 []byte
	room   Room
}

// bufferBytes is how much is copied at once.
const bufferBytes = 64 << 10

// Keep reads r to its end into space. A content without room gives NO_SPACE.
func Keep(space Space, op string, r *storage.Reader, size int64) (*Content, error) {
	room, err := space.Open(size)
	if err != nil {
		return nil, full(op, err)
	}
	sum := sha256.New()
	n, err := io.CopyBuffer(keeper{room, sum}, struct{ io.Reader }{r}, make([]byte, bufferBytes))
	if err == nil {
		return &Content{Size: n, SHA256: sum.Sum(nil), room: room}, nil
	}
	_ = room.Close()
	if r.Err() != nil {
		return nil, r.Err()
	}
	if storage.CodeOf(err) != "" {
		return nil, err
	}
	return nil, full(op, err)
}

func full(op string, err error) error {
	return storage.Errorf(storage.CodeNoSpace, op, "there is no room to keep the body until it is whole").WithCause(err)
}

// keeper writes to a room and a digest.
type keeper struct {
	room Room
	sum  hash.Hash
}

func (k keeper) Write(p []byte) (int, error) {
	k.sum.Write(p)
	return k.room.Write(p)
}

// Reader reads c from its first byte. It can be called again.
func (c *Content) Reader() io.Reader { return io.NewSectionReader(c.room, 0, c.Size) }

// Close frees the room.
func (c *Content) Close() error { return c.room.Close() }

// Files is a Space of unlinked files in a folder, of at most limit bytes
// together; an empty folder is that of the system for temporary files.
func Files(folder string, limit int64) Space { return &files{folder: folder, limit: limit} }

type files struct {
	folder string
	limit  int64
	used   atomic.Int64
}

var errFull = errors.New("the room for bodies is used up")

func (f *files) Open(size int64) (Room, error) {
	if f.used.Load()+max(size, 0) > f.limit {
		return nil, errFull
	}
	file, err := os.CreateTemp(f.folder, "storagemux-body-*")
	if err != nil {
		return nil, fmt.Errorf("make a file for a body: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("unlink the file for a body: %w", err)
	}
	return &fileRoom{File: file, files: f}, nil
}

type fileRoom struct {
	*os.File
	files *files
	held  int64
}

func (r *fileRoom) Write(p []byte) (int, error) {
	if r.files.used.Add(int64(len(p))) > r.files.limit {
		r.files.used.Add(-int64(len(p)))
		return 0, errFull
	}
	r.held += int64(len(p))
	return r.File.Write(p)
}

func (r *fileRoom) Close() error {
	r.files.used.Add(-r.held)
	r.held = 0
	return r.File.Close()
}

package wire

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"

	"github.com/suaveplan/storagemux/internal/storage"
)

// Content is the body of a request. It knows what the transport has taken of it
// and whether it still holds a part.
type Content struct {
	// Length in bytes, or -1 if it is unknown.
	Length int64
	// Again says that the source of a reader can be made more than once.
	Again bool
	// Body, if set, is where the content comes from. Once it was handed out
	// whole the store may have the object, even if what an encoding adds at
	// the end is missing: some servers do without.
	Body *storage.Reader

	readers sync.WaitGroup // opened and not closed
	begun   atomic.Bool    // some reader was read
	whole   atomic.Bool    // some reader reached its end
}

// Reader returns a reader over source for the transport, which closes it.
func (c *Content) Reader(source io.Reader) io.ReadCloser {
	c.readers.Add(1)
	return &contentReader{source: source, content: c, rest: c.Length}
}

// Sent reports whether the store may have all of the content. A nil Content is
// empty.
func (c *Content) Sent() bool {
	return c == nil || c.Length == 0 || c.whole.Load() || c.Body != nil && c.Body.Whole()
}

// Untouched reports that nothing was read of the content, so that it can still be
// sent, once the transport has let go of it.
func (c *Content) Untouched() bool {
	if c.begun.Load() {
		return false
	}
	c.Wait()
	return !c.begun.Load()
}

// Wait returns when the transport has let go of every reader, which may be some
// time after its RoundTrip returned.
func (c *Content) Wait() { c.readers.Wait() }

type contentReader struct {
	source  io.Reader
	content *Content
	rest    int64
	once    sync.Once
}

// Read implements io.Reader.
func (r *contentReader) Read(p []byte) (int, error) {
	r.content.begun.Store(true)
	n, err := r.source.Read(p)
	if r.rest -= int64(n); r.rest == 0 || err == io.EOF {
		r.content.whole.Store(true)
	}
	return n, err
}

// Close implements io.Closer.
func (r *contentReader) Close() error {
	r.once.Do(r.content.readers.Done)
	return nil
}

// ReadHead reads up to limit bytes of r, which has size bytes or, if that is
// negative, a number that is not known.
func ReadHead(r io.Reader, size, limit int64) ([]byte, error) {
	// With room to find out that it ends, a buffer need not grow.
	head := bytes.NewBuffer(make([]byte, 0, min(max(size, 0), limit)+bytes.MinRead))
	_, err := head.ReadFrom(io.LimitReader(r, limit))
	return head.Bytes(), err
}

package muxengine

import (
	"errors"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/suaveplan/storagemux/internal/storage"
)

// content is the body of a write as the members of a mux read it: each from its
// first byte and at its own pace, while the client's body is read once.
type content struct {
	src storage.Body
	// keep makes room for what was read, so that it can be read again; nil
	// does without.
	keep Spool

	mu      sync.Mutex
	reader  io.ReadCloser
	spooled Spooled
	// kept bytes are in spooled; beyond that ring holds the latest.
	kept   int64
	ring   []byte
	window int64
	end    int64
	// err is what the client's body ended with, io.EOF if it was whole.
	err     error
	pulling bool
	changed chan struct{}
	// awaited is how many more readers will come.
	awaited int
	// open are the readers that may want more. crowded: one of them waits for
	// another, since there is no room for what it would fetch.
	open    []*contentReader
	crowded bool
	readers int
	closed  bool
}

// newContent returns the content of src. A src that can be read again is opened
// anew by every reader; any other is kept in the spool, unless that is nil.
func newContent(src storage.Body, spool Spool) *content {
	return &content{src: src, keep: spool}
}

// Size implements storage.Body.
func (c *content) Size() int64 { return c.src.Size() }

// Replayable implements storage.Body.
func (c *content) Replayable() bool {
	if c.src.Replayable() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && c.end == 0 || c.spooled != nil && c.kept == c.end
}

// Open implements storage.Body.
func (c *content) Open() (io.ReadCloser, error) {
	if c.src.Replayable() {
		r, err := c.src.Open()
		if err != nil {
			c.failed(err)
			return nil, err
		}
		return &watchedReader{ReadCloser: r, content: c}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errContentClosed
	}
	if c.reader == nil {
		r, err := c.src.Open()
		if err != nil {
			c.err = err
			return nil, err
		}
		c.reader = r
		if c.keep != nil {
			// A spool without room means that this body is not kept.
			c.spooled, _ = c.keep.Open(c.src.Size())
		}
	}
	r := &contentReader{content: c, done: make(chan struct{})}
	c.open = append(c.open, r)
	return r, nil
}

// failure returns the error that the client's body ended with, nil if it is
// whole as far as it was read.
func (c *content) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.err, io.EOF) {
		return nil
	}
	return c.err
}

func (c *content) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// widen keeps at least the latest window bytes, also without a spool.
func (c *content) widen(window int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window = max(c.window, window)
}

// close frees what was kept. Readers that are still open get an error, also one
// that is waiting for the client.
func (c *content) close() {
	c.mu.Lock()
	c.closed = true
	c.signal()
	var waited io.Closer
	if c.pulling {
		waited, c.reader = c.reader, nil
	}
	c.free()
	c.mu.Unlock()
	if waited != nil {
		_ = waited.Close()
	}
}

func (c *content) free() {
	if !c.closed || c.readers > 0 {
		return
	}
	if c.spooled != nil {
		_ = c.spooled.Close()
		c.spooled, c.kept = nil, 0
	}
	if c.reader != nil {
		_ = c.reader.Close()
		c.reader = nil
	}
}

var (
	errContentClosed = errors.New("the request that the body belongs to has ended")
	errContentGone   = errors.New("this part of the body was not kept")
)

// await says that n more readers will come, or, negative, that they have.
func (c *content) await(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited += n
	if n < 0 {
		c.signal()
	}
}

// isCrowded reports whether a reader waits for another.
func (c *content) isCrowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crowded
}

// signal wakes the readers that wait for more; mu is held.
func (c *content) signal() {
	c.crowded = false
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// read reads what follows for r. The reader that comes first to the end fetches
// more from the client; those that come after wait for it, and it waits for them
// where what it fetches would take the place of what they have not read.
func (c *content) read(p []byte, r *contentReader) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		room := c.room()
		switch {
		case c.closed:
			return 0, errContentClosed
		case r.offset < c.kept:
			n, err = c.fromSpool(p, r.offset)
			return r.advance(n), err
		case r.offset < c.end:
			n, err = c.fromRing(p, r.offset)
			return r.advance(n), err
		case c.err != nil:
			return 0, c.err
		case !c.pulling && room > 0:
			n, err = c.pull(p[:min(int64(len(p)), room)])
			return r.advance(n), err
		}
		c.crowded = !c.pulling
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-r.done:
		}
		c.mu.Lock()
		select {
		case <-r.done:
			return 0, errContentClosed
		default:
		}
	}
}

// room is how much may be fetched: all where it is kept, and where no other reader
// needs it.
func (c *content) room() int64 {
	if c.window == 0 || c.spooled != nil && c.kept == c.end {
		return math.MaxInt64
	}
	slowest := c.end
	if c.awaited > 0 {
		slowest = c.kept
	}
	for _, r := range c.open {
		slowest = min(slowest, max(r.offset, c.kept))
	}
	return c.window - (c.end - slowest)
}

func (c *content) fromSpool(p []byte, offset int64) (int, error) {
	n := min(int64(len(p)), c.kept-offset)
	spooled := c.spooled
	c.readers++
	c.mu.Unlock()
	read, err := spooled.ReadAt(p[:n], offset)
	c.mu.Lock()
	c.readers--
	c.free()
	if int64(read) == n {
		err = nil
	}
	return read, err
}

func (c *content) fromRing(p []byte, offset int64) (int, error) {
	size := int64(len(c.ring))
	if offset < c.end-size {
		return 0, errContentGone
	}
	at := offset % size
	n := min(int64(len(p)), c.end-offset, size-at)
	return copy(p[:n], c.ring[at:]), nil
}

// pull reads from the client into p and keeps a copy.
func (c *content) pull(p []byte) (int, error) {
	c.pulling = true
	c.readers++
	reader := c.reader
	c.mu.Unlock()
	n, err := reader.Read(p)
	c.mu.Lock()
	c.readers--
	c.pulling = false
	if c.closed {
		c.free()
		return 0, errContentClosed
	}
	c.store(p[:n])
	if err != nil {
		c.err = err
	}
	c.signal()
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (c *content) store(p []byte) {
	offset := c.end
	c.end += int64(len(p))
	if c.spooled != nil && c.kept == offset {
		if _, err := c.spooled.Write(p); err == nil {
			c.kept = c.end
			return
		}
	}
	if c.window == 0 {
		return
	}
	if c.ring == nil {
		c.ring = make([]byte, c.window)
	}
	for len(p) > 0 {
		n := copy(c.ring[offset%c.window:], p)
		p, offset = p[n:], offset+int64(n)
	}
}

// contentReader is one member's way through the content.
type contentReader struct {
	content *content
	offset  int64 // changed with content.mu held
	done    chan struct{}
	once    sync.Once
}

func (r *contentReader) Read(p []byte) (int, error) { return r.content.read(p, r) }

// advance notes that n more bytes have been read.
func (r *contentReader) advance(n int) int {
	r.offset += int64(n)
	if r.content.crowded && n > 0 {
		r.content.signal()
	}
	return n
}

func (r *contentReader) Close() error {
	r.once.Do(func() {
		close(r.done)
		c := r.content
		c.mu.Lock()
		defer c.mu.Unlock()
		c.open = slices.DeleteFunc(c.open, func(o *contentReader) bool { return o == r })
		c.signal()
	})
	return nil
}

// watchedReader notes how a body ended that every reader opens for itself.
type watchedReader struct {
	io.ReadCloser
	content *content
	closed  atomic.Bool
}

func (r *watchedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF && !r.closed.Load() {
		r.content.failed(err)
	}
	return n, err
}

func (r *watchedReader) Close() error {
	r.closed.Store(true)
	return r.ReadCloser.Close()
}

package s3

import (
	"io"
	"sync"
	"sync/atomic"

	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
	"github.com/suaveplan/storagemux/internal/storage"
)

// smallBytes is the longest content that is read and verified before the
// storage sees it, and that can therefore be sent again.
const smallBytes = sigv4.WithheldBytes

var smallBuffers = sync.Pool{New: func() any { return new([smallBytes]byte) }}

// smallBody is a verified content in a pooled buffer. The buffer goes back when
// the request and every reader have let it go: a transport may still read from
// the body of a request that was answered early.
type smallBody struct {
	buffer *[smallBytes]byte
	size   int
	holds  atomic.Int32
}

// newSmallBody returns a body of size bytes, held once, whose content is to be
// filled in.
func newSmallBody(size int64) *smallBody {
	b := &smallBody{buffer: smallBuffers.Get().(*[smallBytes]byte), size: int(size)}
	b.holds.Store(1)
	return b
}

func (b *smallBody) content() []byte { return b.buffer[:b.size] }

// hold keeps the buffer; once nobody holds it, it is gone for good.
func (b *smallBody) hold() bool {
	for {
		n := b.holds.Load()
		if n == 0 {
			return false
		}
		if b.holds.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (b *smallBody) release() {
	if b.holds.Add(-1) == 0 {
		smallBuffers.Put(b.buffer)
	}
}

// Open implements storage.Body.
func (b *smallBody) Open() (io.ReadCloser, error) {
	if !b.hold() {
		return nil, storage.ErrConsumed
	}
	return &smallReader{body: b, rest: b.content()}, nil
}

// Size implements storage.Body.
func (b *smallBody) Size() int64 { return int64(b.size) }

// Replayable implements storage.Body.
func (b *smallBody) Replayable() bool { return true }

// smallReader reads a smallBody and holds it until closed. Close may come
// beside a Read.
type smallReader struct {
	body   *smallBody
	mu     sync.Mutex
	rest   []byte
	closed bool
}

// Read implements io.Reader.
func (r *smallReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return 0, io.ErrClosedPipe
	case len(r.rest) == 0:
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// WriteTo implements io.WriterTo in one write.
func (r *smallReader) WriteTo(w io.Writer) (int64, error) {
	r.mu.Lock()
	rest := r.rest
	if r.closed || !r.body.hold() {
		r.mu.Unlock()
		return 0, io.ErrClosedPipe
	}
	r.rest = nil
	r.mu.Unlock()
	defer r.body.release()
	n, err := w.Write(rest)
	return int64(n), err
}

// Close implements io.Closer.
func (r *smallReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed, r.rest = true, nil
		r.body.release()
	}
	return nil
}

// streamedBody is a longer content on its way from the client. It can be read
// once.
type streamedBody struct {
	request *request
	opened  atomic.Bool
}

// Open implements storage.Body.
func (b *streamedBody) Open() (io.ReadCloser, error) {
	if b.opened.Swap(true) {
		return nil, storage.ErrConsumed
	}
	return streamedReader{b.request.body, b.request}, nil
}

// Size implements storage.Body.
func (b *streamedBody) Size() int64 { return b.request.body.Size() }

// Replayable implements storage.Body.
func (b *streamedBody) Replayable() bool { return false }

// streamedReader keeps the WriterTo of the Body within visible.
type streamedReader struct {
	*sigv4.Body
	request *request
}

// Close ends a Read that waits for the client.
func (r streamedReader) Close() error {
	r.request.closeBody()
	return nil
}

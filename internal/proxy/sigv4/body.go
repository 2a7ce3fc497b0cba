package sigv4

import (
	"bytes"
	"encoding/base64"
	"io"
	"sync"
	"sync/atomic"
)

// WithheldBytes is how much of the end of a body is given out only once all of
// it has been verified.
const WithheldBytes = 64 << 10

var (
	tailBuffers = sync.Pool{New: func() any { return new([WithheldBytes]byte) }}
	copyBuffers = sync.Pool{New: func() any { return new([WithheldBytes]byte) }}
)

// Body reads the content of a request's body and verifies it. It gives out the
// last piece, of up to WithheldBytes, only after every chunk signature, digest
// and trailer held; else Read returns an *Error in its place. So whoever stores
// a content only after io.EOF never stores an unverified one.
//
// Its methods may be called from different goroutines, one at a time or with
// Close beside another.
type Body struct {
	mu      sync.Mutex
	closed  atomic.Bool
	payload *Payload
	// raw is the body as sent; src is its content.
	raw    io.Reader
	chunks *chunkReader
	src    io.Reader
	hasher hasher
	sums   Sums

	// head is how much is left before the withheld tail.
	head     int64
	tailSize int
	buffer   *[WithheldBytes]byte
	tail     []byte
	verified bool
	err      error
	read     atomic.Int64
}

// NewBody returns a Body over raw as p describes it; p.Size must be known.
// auth is that of Verify, or nil to leave chunk signatures unchecked.
func NewBody(raw io.Reader, p *Payload, auth *Auth) *Body {
	b := &Body{payload: p, raw: raw, src: raw, tailSize: int(min(p.Size, WithheldBytes))}
	b.head = p.Size - int64(b.tailSize)
	if p.Form.Chunked() {
		var c *chain
		if auth != nil && p.Form.signedChunks() {
			own := *auth.chain
			c = &own
		}
		b.chunks = newChunkReader(raw, c)
		b.src = b.chunks
	}
	if p.contentSHA256 != nil {
		b.hasher.want(digestSHA256)
	}
	for d := range digestCount {
		if p.expected[d] != nil || p.trailing[d] {
			b.hasher.want(d)
		}
	}
	return b
}

// Size returns the length of the content in bytes.
func (b *Body) Size() int64 { return b.payload.Size }

// BytesRead returns how many bytes of content arrived so far.
func (b *Body) BytesRead() int64 { return b.read.Load() }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(); err != nil {
		return 0, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if b.head > 0 {
		if int64(len(p)) > b.head {
			p = p[:b.head]
		}
		return b.readSource(p)
	}
	if !b.verified {
		if err := b.fillTail(); err != nil {
			return 0, err
		}
	}
	if len(b.tail) == 0 {
		b.releaseBuffers()
		return 0, io.EOF
	}
	n := copy(p, b.tail)
	b.tail = b.tail[n:]
	return n, nil
}

// WriteTo implements io.WriterTo with a pooled buffer, and hands the tail over
// in one piece.
func (b *Body) WriteTo(w io.Writer) (int64, error) {
	buffer := copyBuffers.Get().(*[WithheldBytes]byte)
	defer copyBuffers.Put(buffer)
	var total int64
	for {
		n, err := b.Read(buffer[:])
		if n > 0 {
			written, writeErr := w.Write(buffer[:n])
			total += int64(written)
			if writeErr != nil {
				return total, writeErr
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// ReadFull reads all of the content into dst, which must be Size bytes long
// and of which nothing counts unless it returns nil.
func (b *Body) ReadFull(dst []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(); err != nil {
		return err
	}
	if err := b.fill(dst); err != nil {
		return err
	}
	b.head = 0
	b.releaseBuffers()
	return nil
}

// Err returns what was wrong with the body, if anything was found.
func (b *Body) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Verified reports whether all of the body was read and held.
func (b *Body) Verified() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.verified
}

// Sums returns the digests of the content that were computed, once Verified.
func (b *Body) Sums() Sums {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sums
}

// Checksums calls yield with the name and the base64 value of each checksum
// header or trailer that the client gave, once Verified.
func (b *Body) Checksums(yield func(header, value string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.verified {
		return
	}
	for d, header := range checksumHeaders {
		if header != "" && (b.payload.expected[d] != nil || b.payload.trailing[d]) {
			yield(header, base64.StdEncoding.EncodeToString(b.hasher.hashes[d].Sum(nil)))
		}
	}
}

// Close makes every further Read fail and gives buffers back. It returns false
// if a Read was under way and may be waiting for the client.
func (b *Body) Close() bool {
	b.closed.Store(true)
	if !b.mu.TryLock() {
		return false
	}
	defer b.mu.Unlock()
	b.tail = nil
	b.releaseBuffers()
	return true
}

func (b *Body) usable() error {
	if b.closed.Load() {
		return io.ErrClosedPipe
	}
	return b.err
}

// readSource reads a piece of the content from what was sent.
func (b *Body) readSource(p []byte) (int, error) {
	n, err := b.src.Read(p)
	b.head -= int64(n)
	b.read.Add(int64(n))
	b.hasher.write(p[:n])
	if err == io.EOF && b.head == 0 {
		err = nil // fillTail finds out whether the end was due
	}
	if err == nil {
		return n, nil
	}
	return n, b.fail(cut(err))
}

// fail keeps what was wrong with the body. After Close, it was not the client
// who ended it.
func (b *Body) fail(err error) error {
	if b.closed.Load() {
		return io.ErrClosedPipe
	}
	b.err = err
	return err
}

func (b *Body) fillTail() error {
	if b.tailSize > 0 {
		b.buffer = tailBuffers.Get().(*[WithheldBytes]byte)
		b.tail = b.buffer[:b.tailSize]
	}
	err := b.fill(b.tail)
	if err != nil {
		b.tail = nil
		b.releaseBuffers()
	}
	return err
}

// fill reads the rest of the content, which is as long as dst, and verifies
// the whole.
func (b *Body) fill(dst []byte) error {
	n, err := io.ReadFull(b.src, dst)
	b.read.Add(int64(n))
	b.hasher.write(dst[:n])
	if err != nil {
		return b.fail(cut(err))
	}
	if err := b.verify(); err != nil {
		return b.fail(err)
	}
	return nil
}

// verify checks everything that can be checked when all content was read.
func (b *Body) verify() error {
	var beyond [1]byte
	n, err := io.ReadFull(b.src, beyond[:])
	switch {
	case n > 0:
		return errorf(CodeIncompleteBody, "the body is longer than the %d bytes that were announced", b.payload.Size)
	case err != io.EOF:
		return cut(err)
	}
	expected := b.payload.expected
	if b.chunks != nil {
		trailer, err := b.chunks.trailer(b.payload.Form.trailer())
		if err != nil {
			return err
		}
		if err := b.expectTrailer(&expected, trailer); err != nil {
			return err
		}
	}
	computed := b.hasher.sums()
	if want := b.payload.contentSHA256; want != nil && !bytes.Equal(want, computed[digestSHA256]) {
		return errorf(CodeContentSHA256Mismatch, "the x-amz-content-sha256 you specified did not match what was received")
	}
	if err := compare(expected, computed); err != nil {
		return err
	}
	b.sums, b.verified = toSums(computed), true
	return nil
}

// expectTrailer adds the checksums of the trailer to those expected. One that
// was announced must be there; one that was not cannot be checked any more.
func (b *Body) expectTrailer(expected *[digestCount][]byte, trailer map[string]string) error {
	for name, value := range trailer {
		d, ok := digestOfHeader(name)
		if !ok {
			continue
		}
		sum, valid := decodeDigest(d, value)
		if !valid || !b.payload.trailing[d] {
			return errorf(CodeMalformedTrailer, "the trailer %s is not valid or was not announced", name)
		}
		if expected[d] != nil && !bytes.Equal(expected[d], sum) {
			return errorf(CodeBadDigest, "header and trailer give different values of %s", digestNames[d])
		}
		expected[d] = sum
	}
	for d, announced := range b.payload.trailing {
		if announced && expected[d] == nil {
			return errorf(CodeMalformedTrailer, "the trailer with the %s that was announced is missing", digestNames[d])
		}
	}
	return nil
}

func (b *Body) releaseBuffers() {
	if b.buffer != nil && len(b.tail) == 0 {
		tailBuffers.Put(b.buffer)
		b.buffer = nil
	}
	if b.chunks != nil && (b.verified || b.err != nil || b.closed.Load()) {
		b.chunks.release()
		b.chunks, b.src = nil, eof{}
	}
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

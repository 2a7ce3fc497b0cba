package s3

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// DefaultClientIdle is how long a client may neither send nor take
	// anything while it is its turn.
	DefaultClientIdle = 2 * time.Minute
	// segmentBytes is what a client must take of a file within that time:
	// some 9 KiB/s.
	segmentBytes = 1 << 20
)

// client arms the deadlines of a request's connection, so that one that stands
// still holds neither a backend nor a place among the requests in flight.
// Writers that have no deadlines are left alone.
type client struct {
	controller *http.ResponseController
	idle       time.Duration
}

func (c client) armRead()    { _ = c.controller.SetReadDeadline(time.Now().Add(c.idle)) }
func (c client) armWrite()   { _ = c.controller.SetWriteDeadline(time.Now().Add(c.idle)) }
func (c client) cutRead()    { _ = c.controller.SetReadDeadline(time.Now()) }
func (c client) clearRead()  { _ = c.controller.SetReadDeadline(time.Time{}) }
func (c client) clearWrite() { _ = c.controller.SetWriteDeadline(time.Time{}) }

// clientReader reads the body of a request.
type clientReader struct {
	client
	body io.Reader
}

// Read implements io.Reader. Behind the end of the body net/http reads on, to
// notice a client that leaves; a deadline that went off would look like that.
// Short of the end the deadline stays, for net/http's attempt to read the rest.
func (r clientReader) Read(p []byte) (int, error) {
	r.armRead()
	n, err := r.body.Read(p)
	if err == io.EOF {
		r.clearRead()
	}
	return n, err
}

// clientWriter writes the content of an answer, of which left bytes were
// promised. The deadline runs while the client is to take something, never
// while a backend is waited for. A file goes out by sendfile, in segments.
type clientWriter struct {
	client
	w    http.ResponseWriter
	left int64
}

var errTooLong = errors.New("the content is longer than the object")

// Write implements io.Writer.
func (w *clientWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		return 0, errTooLong
	}
	w.armWrite()
	n, err := w.w.Write(p)
	w.left -= int64(n)
	return n, err
}

// leastPiece is how much of an answer is gathered before it is sent on.
const leastPiece = 16 << 10

var copyBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// ReadFrom implements io.ReaderFrom.
func (w *clientWriter) ReadFrom(r io.Reader) (int64, error) {
	if file, ok := r.(*os.File); ok {
		return w.sendFile(file)
	}
	buffer := copyBuffers.Get().(*[64 << 10]byte)
	defer copyBuffers.Put(buffer)
	var total int64
	for {
		// What came with the head of a backend's answer is little: it goes out
		// with what follows.
		n, err := io.ReadAtLeast(r, buffer[:], int(max(1, min(w.left, leastPiece))))
		if n > 0 {
			written, err := w.Write(buffer[:n])
			total += int64(written)
			if err != nil {
				return total, err
			}
		}
		// The end of the answer is still in net/http's buffer: an error that
		// comes with the end of the content keeps it there.
		switch {
		case err == io.EOF, err == io.ErrUnexpectedEOF:
			return total, nil
		case err != nil:
			return total, err
		}
	}
}

func (w *clientWriter) sendFile(file *os.File) (int64, error) {
	var total int64
	for w.left > 0 {
		segment := min(w.left, segmentBytes)
		w.armWrite()
		n, err := io.Copy(w.w, &io.LimitedReader{R: file, N: segment})
		total += n
		w.left -= n
		if err != nil || n < segment {
			return total, err
		}
	}
	return total, nil
}

package muxengine

import (
	"errors"
	"io"

	"github.com/suaveplan/storagemux/internal/storage"
)

// stream is the body of an object as the caller reads it. It waits for the
// member no longer than its time limit, and where one member's body breaks it
// goes on with another's.
type stream struct {
	call    *call
	attempt *attempt
	body    io.ReadCloser
	object  identityOf
	// offset is the next byte within the object, end the one after the last.
	offset, end int64
	lastRead    int64
	// verifier computes the checksum that the store keeps of the content,
	// nil where there is none or only a part is read.
	verifier *storage.Verifier
	// broken is why the current body cannot be read any further, err why
	// the stream cannot.
	broken, err error
	closed      bool
}

// open makes the caller's object of what attempt a has returned.
func (c *call) open(a *attempt, obj *storage.Object) *storage.Object {
	c.obj = *obj
	c.obj.ServedBy = a.servedBy(obj.ServedBy)
	c.obj.Body = &c.stream
	c.stream = stream{
		call: c, attempt: a, body: obj.Body, object: identify(&obj.Info, a.m.caps),
		offset: obj.Offset, end: obj.Offset + obj.Length,
		lastRead: c.node.mux.now(),
	}
	c.stream.beginVerifying()
	return &c.obj
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for s.err == nil {
		if s.broken != nil {
			s.resume()
			continue
		}
		n, err := s.readOnce(p)
		if errors.Is(err, io.EOF) {
			s.err = io.EOF
			return n, io.EOF
		}
		s.broken = err
		if err == nil || n > 0 {
			return n, nil
		}
	}
	return 0, s.err
}

// readOnce reads from the current body and checks that it keeps its word about
// the length.
func (s *stream) readOnce(p []byte) (int, error) {
	a, mux := s.attempt, s.call.node.mux
	if mux.now()-s.lastRead >= int64(clientStall) {
		a.stalled.Store(true)
	}
	if a.timer != nil {
		a.timer.Reset(a.m.timeout)
	}
	n, err := s.body.Read(p)
	if a.timer != nil {
		a.timer.Stop()
	}
	s.lastRead = mux.now()
	if over := s.offset + int64(n) - s.end; over > 0 {
		s.offset = s.end
		return n - int(over), errors.New("the body is longer than was announced")
	}
	if s.verifier != nil {
		s.verifier.Write(p[:n])
		if s.offset+int64(n) == s.end && s.verifier.Verify() != nil {
			// Without its last piece nobody takes the body for whole.
			return 0, errCorrupt
		}
	}
	s.offset += int64(n)
	if errors.Is(err, io.EOF) && s.offset < s.end {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// resume ends the attempt whose body broke and moves on to a member that holds
// the same object. Where there is none, the caller learns of it: a body is
// never silently short.
func (s *stream) resume() {
	c, a := s.call, s.attempt
	err := a.explain(s.broken)
	a.judge(err)
	_ = s.endAttempt(err)
	if storage.Classify(err) != storage.ClassTransient {
		s.fail(err)
		return
	}
	c.note(a.m, err)
	if !s.object.strong() || s.offset == s.end || s.offset > 0 && errors.Is(err, errCorrupt) {
		c.node.core.broken.Add(1)
		s.fail(err)
		return
	}
	c.req.op, c.req.same = opResume, &s.object
	c.req.get = storage.GetOptions{Range: &storage.Range{First: s.offset, Last: s.end - 1}}
	c.prepare()
	c.pick.tries, c.pick.draws, c.pick.tried = 0, 0, c.failed
	if _, failed := c.walkOn(); failed != nil {
		if c.ctx.Err() == nil {
			c.node.core.broken.Add(1)
		}
		s.fail(err)
		return
	}
	c.node.core.resumes.Add(1)
	if s.offset == 0 {
		s.beginVerifying()
	}
}

// errCorrupt is a cause: what a store has sent is not what it keeps.
var errCorrupt = errors.New("the content does not have the checksum that the backend keeps of it")

// beginVerifying starts the checksum of a content that is read whole. A mux
// leaves that to the one below it, which knows the leaf.
func (s *stream) beginVerifying() {
	o := &s.call.obj
	if s.verifier = nil; s.attempt.m.leaf != nil && o.Offset == 0 && o.Length == o.Size {
		s.verifier = storage.NewVerifier(cheapest(o.Checksums))
	}
}

// cheapest returns the one of c that costs least to compute, and no MD5.
func cheapest(c storage.Checksums) storage.Checksums {
	switch {
	case c.CRC64NVME != nil:
		return storage.Checksums{CRC64NVME: c.CRC64NVME}
	case c.CRC32C != nil:
		return storage.Checksums{CRC32C: c.CRC32C}
	case c.CRC32 != nil:
		return storage.Checksums{CRC32: c.CRC32}
	case c.SHA256 != nil:
		return storage.Checksums{SHA256: c.SHA256}
	default:
		return storage.Checksums{SHA1: c.SHA1}
	}
}

// attach goes on with what attempt a has returned.
func (s *stream) attach(a *attempt, obj *storage.Object) {
	s.attempt, s.body, s.broken = a, obj.Body, nil
	s.lastRead = s.call.node.mux.now()
}

func (s *stream) fail(cause error) {
	e := annotate(cause, opGet, s.attempt.m, s.call.node.cfg.Mode, s.attempt.index, s.call.attempts)
	e.Message = "the body broke off and could not be resumed: " + e.Message
	s.err = e
}

// Close implements io.Closer.
func (s *stream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.endAttempt(nil)
	if errors.Is(s.err, io.EOF) {
		s.call.endSpan(nil)
	} else {
		s.call.endSpan(s.err)
	}
	s.err = errClosed
	return err
}

var errClosed = errors.New("the body was closed")

// endAttempt closes the current body; outcome is what its attempt ends with.
func (s *stream) endAttempt(outcome error) error {
	if s.attempt.ended {
		return nil
	}
	err := s.body.Close()
	s.attempt.end(outcome)
	return err
}

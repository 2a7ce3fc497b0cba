package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"

	"github.com/suaveplan/storagemux/internal/storage"
)

// partialTries is how often a partial write is begun anew since the object was
// changed by somebody else. Each such change means that somebody got on.
const partialTries = 20

// SetPartial implements storage.Storage: a new object is made of what is kept of
// the old one, which the store copies, and of the body, and replaces the old one
// if that is still there. What lies before an offset of less than 5 MiB is sent
// with the body, since it is too small for a part. Where another write comes
// between, the whole is tried again, if the body has at most 5 MiB.
func (s *Storage) SetPartial(ctx context.Context, key string, offset int64, body storage.Body) (storage.Info, error) {
	const op = "SetPartial"
	if err := s.validate(op, key); err != nil {
		return storage.Info{}, err
	}
	if offset < 0 {
		return storage.Info{}, storage.Errorf(storage.CodeInvalidRange, op, "the offset %d is negative", offset)
	}
	if size := body.Size(); size > maxPut {
		return storage.Info{}, storage.Errorf(storage.CodeTooLarge, op, "the body has %d bytes and may have at most %d", size, int64(maxPut))
	}
	r, err := storage.OpenBody(ctx, op, body, storage.Checksums{})
	if err != nil {
		return storage.Info{}, err
	}
	defer r.Close()
	start := partBuffers.Get().(*[partSize]byte)
	defer partBuffers.Put(start)
	n, err := io.ReadFull(r, start[:])
	held := err == io.EOF || err == io.ErrUnexpectedEOF
	if err != nil && !held {
		return storage.Info{}, err
	}
	done, err := s.turns.wait(ctx, op, key)
	if err != nil {
		return storage.Info{}, err
	}
	defer done()
	for range partialTries {
		p := &partial{store: s, ctx: ctx, key: key, offset: offset, start: start[:n], reader: r}
		if !held {
			p.rest = r
		}
		var info storage.Info
		info, err = p.attempt()
		p.close()
		if code := storage.CodeOf(err); code != storage.CodePreconditionFailed && code != storage.CodeKeyNotFound {
			return info, err
		}
		if !held {
			break
		}
	}
	return storage.Info{}, storage.Errorf(storage.CodeUnavailable, op, "%q was changed by others meanwhile", key).WithCause(changed{err})
}

// changed hides the code of its cause: the caller gave no condition.
type changed struct{ cause error }

// Error implements error.
func (c changed) Error() string { return c.cause.Error() }

// partial is one attempt at a partial write.
type partial struct {
	store  *Storage
	ctx    context.Context
	key    string
	offset int64
	start  []byte    // of the body, or all of it
	rest   io.Reader // of the body, nil if start is all of it
	reader *storage.Reader

	old    storage.Info // without an ETag if there is none
	opened []io.Closer
}

func (p *partial) close() {
	for _, o := range p.opened {
		_ = o.Close()
	}
}

func (p *partial) attempt() (storage.Info, error) {
	const op = "SetPartial"
	w := &write{store: p.store, ctx: p.ctx, op: op, key: p.key, body: p.reader}
	old, header, err := p.store.head(p.ctx, op, p.key, storage.Conditions{})
	switch {
	case storage.CodeOf(err) == storage.CodeKeyNotFound:
		w.opts.Conditions = storage.Conditions{IfNoneMatch: []string{"*"}}
	case err != nil:
		return storage.Info{}, err
	case !storage.StrongTag(old.ETag):
		return storage.Info{}, storage.Errorf(storage.CodeUnsupported, op, "the store gives %q no strong entity tag to tell whether others change it meanwhile", p.key)
	default:
		p.old = old
		if len(p.start) == 0 {
			return old, nil
		}
		w.opts.Headers, w.opts.Metadata = old.Headers, maps.Clone(old.Metadata)
		delete(w.opts.Metadata, storage.VersionMetadata)
		w.opts.Conditions = storage.Conditions{IfMatch: []string{old.ETag}}
		if w.extra, err = p.store.kept(p.ctx, op, p.key, header); err != nil {
			return storage.Info{}, err
		}
	}
	l := p.layout()
	if l.zeros > maxPut {
		return storage.Info{}, storage.Errorf(storage.CodeTooLarge, op, "the offset %d is more than %d bytes beyond the end of %q", p.offset, int64(maxPut), p.key)
	}
	buffer := partBuffers.Get().(*[partSize]byte)
	defer func() {
		if !w.handedOver {
			partBuffers.Put(buffer)
		}
	}()
	middle := p.middle(l)
	n, err := io.ReadFull(middle, buffer[:])
	ended := err == io.EOF || err == io.ErrUnexpectedEOF
	switch {
	case err != nil && !ended:
		return storage.Info{}, err
	case ended && l.kept == 0 && middle.end >= p.old.Size:
		return w.whole(buffer[:n])
	}
	size := int64(0)
	answer, etag, err := w.upload(func(upload string) (list []part, err error) {
		if list, err = w.copyParts(upload, nil, p.key, p.old.ETag, span{0, l.kept}); err != nil {
			return nil, err
		}
		for n > 0 {
			next, err := w.part(upload, len(list)+1, buffer[:n])
			if err != nil {
				return nil, err
			}
			list = append(list, next)
			if n, err = io.ReadFull(middle, buffer[:]); err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				return nil, err
			}
			if len(list) == storage.MaxParts {
				return nil, storage.Errorf(storage.CodeTooLarge, op, "%q would have more than %d parts", p.key, storage.MaxParts)
			}
		}
		size = max(p.old.Size, middle.end)
		return w.copyParts(upload, list, p.key, p.old.ETag, span{middle.end, size})
	})
	if err != nil {
		return storage.Info{}, err
	}
	return w.info(size, answer, etag), nil
}

// layout says of what the new object is made up to the body: kept bytes are
// copied by the store, and after them head bytes are read from the old object and
// sent again, and zeros are added.
type layout struct{ kept, head, zeros int64 }

func (p *partial) layout() (l layout) {
	end := min(p.offset, p.old.Size)
	if end >= storage.MinPartBytes {
		l.kept = end
	}
	l.head = end - l.kept
	if len(p.start) > 0 {
		l.zeros = p.offset - end
	}
	return l
}

// middle is the content that is sent: it ends where the old object does, or
// makes whole parts, so that what follows can be copied.
type middle struct {
	partial *partial
	before  io.Reader // head, zeros and body
	at      int64     // position in the object of what is read next
	first   int64     // position of the start
	after   io.Reader
	end     int64 // position of the end, once it is known
}

func (p *partial) middle(l layout) *middle {
	var sources []io.Reader
	if l.head > 0 {
		sources = append(sources, p.read(span{l.kept, l.kept + l.head}))
	}
	sources = append(sources, io.LimitReader(zeros{}, l.zeros), bytes.NewReader(p.start))
	if p.rest != nil {
		sources = append(sources, p.rest)
	}
	return &middle{partial: p, before: io.MultiReader(sources...), at: l.kept, first: l.kept}
}

// Read implements io.Reader.
func (m *middle) Read(b []byte) (int, error) {
	if m.after == nil {
		n, err := m.before.Read(b)
		m.at += int64(n)
		if n > 0 || err != io.EOF {
			return n, err
		}
		filled := (m.at - m.first + partSize - 1) / partSize * partSize
		m.end = max(m.at, min(m.first+filled, m.partial.old.Size))
		m.after = m.partial.read(span{m.at, m.end})
	}
	return m.after.Read(b)
}

// read returns a reader over a part of the old object, which is opened when it
// is first read.
func (p *partial) read(s span) io.Reader { return &oldReader{partial: p, span: s} }

type oldReader struct {
	partial *partial
	span    span
	source  io.Reader
}

// Read implements io.Reader.
func (r *oldReader) Read(b []byte) (int, error) {
	if r.span.first == r.span.end {
		return 0, io.EOF
	}
	if r.source == nil {
		p := r.partial
		obj, err := p.store.get(p.ctx, "SetPartial", p.key, storage.GetOptions{
			Range:      &storage.Range{First: r.span.first, Last: r.span.end - 1},
			Conditions: storage.Conditions{IfMatch: []string{p.old.ETag}},
		})
		if err != nil {
			return 0, err
		}
		p.opened = append(p.opened, obj.Body)
		r.source = obj.Body
	}
	n, err := r.source.Read(b)
	var e *storage.Error
	if err != nil && err != io.EOF && errors.As(err, &e) {
		e.Op = "SetPartial"
	}
	return n, err
}

// zeros is an endless reader.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

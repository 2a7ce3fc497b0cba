package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash/crc32"
	"io"
	"net/http"
	"sync"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// What tells the store that it has a whole body, the commit token, is
//
//   - the body's SHA-256 or MD5 in a signed header, where it is known, or where
//     the body is so small that it is read first;
//   - else a CRC-32 in a header or a trailer, where the store has shown that it
//     verifies such (trial);
//   - else a signature on each chunk, the last of which is empty, which every S3
//     service knows since 2013; without credentials a checksum in a trailer;
//   - of a body of unknown length, each part's SHA-256, and the list of parts.
//
// Parts that a caller uploads carry the same tokens as whole objects, except for
// CRC-32s, which a store takes only for uploads that were begun with them.
//
// An unsigned body without a digest is never sent: some servers store what has
// arrived of it when the connection breaks.

const (
	// smallBody is what is read before a request is made.
	smallBody = 64 << 10
	// partSize is the size of the parts of a body of unknown length, the
	// smallest that S3 allows. It is what such a write holds in memory.
	partSize = storage.MinPartBytes
	// maxPut is the most that one request may store.
	maxPut = 5 << 30
	// expectFrom is the size from which the store is asked first whether it
	// would take the body.
	expectFrom = 1 << 20
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBody + 1]byte) }}
	partBuffers  = sync.Pool{New: func() any { return new([partSize]byte) }}
)

// SetStream implements storage.Storage.
func (s *Storage) SetStream(ctx context.Context, key string, b storage.Body, opts storage.SetOptions) (storage.Info, error) {
	const op = "SetStream"
	if err := s.validate(op, key); err != nil {
		return storage.Info{}, err
	}
	size := b.Size()
	if size > maxPut {
		return storage.Info{}, storage.Errorf(storage.CodeTooLarge, op, "%q has %d bytes, and one PUT takes at most %d", key, size, int64(maxPut))
	}
	if len(opts.Conditions.IfMatch) > 1 {
		narrowed, err := s.narrow(ctx, key, storage.Conditions{IfMatch: opts.Conditions.IfMatch})
		if err != nil {
			return storage.Info{}, err
		}
		opts.Conditions.IfMatch = narrowed.IfMatch
	}
	r, err := storage.OpenBody(ctx, op, b, s.unverified(opts.Checksums))
	if err != nil {
		return storage.Info{}, err
	}
	defer r.Close()
	w := &write{store: s, ctx: ctx, op: op, key: key, opts: opts, body: r}
	return w.transfer(size)
}

// transfer stores the body, which has size bytes or, if that is -1, any number.
func (w *write) transfer(size int64) (storage.Info, error) {
	if size > smallBody {
		return w.stream(size)
	}
	r := w.body
	buffer := smallBuffers.Get().(*[smallBody + 1]byte)
	defer smallBuffers.Put(buffer)
	n, err := io.ReadFull(r, buffer[:])
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return w.whole(buffer[:n])
	case err != nil:
		return storage.Info{}, err
	}
	part := partBuffers.Get().(*[partSize]byte)
	defer func() {
		if !w.handedOver {
			partBuffers.Put(part)
		}
	}()
	copy(part[:], buffer[:])
	n, err = io.ReadFull(r, part[len(buffer):])
	n += len(buffer)
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return w.whole(part[:n])
	case err != nil:
		return storage.Info{}, err
	case w.query != nil:
		return storage.Info{}, storage.Errorf(storage.CodeTooLarge, w.op, "a part of unknown length has more than the %d bytes that are held for it", int64(partSize))
	}
	return w.parts(part)
}

// unverified returns those checksums that no server can be relied on to verify.
func (s *Storage) unverified(c storage.Checksums) storage.Checksums {
	switch {
	case s.anonymous: // a SHA-256 that is not signed need not be looked at
	case c.SHA256 != nil:
		c.SHA256 = nil
	case c.MD5 != nil:
		c.MD5 = nil
	}
	return c
}

// write is one operation that stores an object, or a part of an upload.
type write struct {
	store *Storage
	ctx   context.Context
	op    string
	key   string
	opts  storage.SetOptions
	// extra headers belong to the object besides those of opts.
	extra http.Header
	// query says which part of which upload is stored; nil means an object.
	query query
	body  *storage.Reader // nil where nothing is sent
	// kept: an upload that cannot be completed is not aborted, since it is
	// the caller's.
	kept bool
	// handedOver: an upload's end is in the hands of a goroutine that may
	// still hold its buffer.
	handedOver bool
}

// send sends r, whose content is c, and returns the answer's headers. It
// returns when the transport has let go of the content.
func (w *write) send(ctx context.Context, r *request, c *content) (http.Header, []byte, error) {
	caller := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.op, r.key, r.content, r.write = w.op, w.key, c, true
	resp, err := w.store.send(ctx, r)
	var answer []byte
	var header http.Header
	if err == nil {
		header = resp.Header
		// While a server puts parts together it sends a space now and then.
		answer, err = io.ReadAll(storage.ProgressReader(w.ctx, io.LimitReader(resp.Body, 1<<20)))
		_ = resp.Body.Close()
		if err != nil {
			err = wire.Unanswered(caller, w.op, w.key, err, true)
		}
	}
	if c != nil {
		if err != nil {
			cancel()
			if w.body != nil {
				_ = w.body.Close()
			}
		}
		c.Wait()
	}
	// The body's own fault comes first: it is why the request broke.
	if w.body != nil && w.body.Err() != nil {
		return nil, nil, w.body.Err()
	}
	return header, answer, err
}

// header returns what a PUT carries. Checksums of parts are left out: servers
// take them only for uploads that were begun with the same kind.
func (w *write) header() http.Header {
	if w.query != nil {
		return make(http.Header, 8)
	}
	header := w.objectHeader()
	addConditions(header, w.opts.Conditions)
	addChecksum(header, w.opts.Checksums)
	return header
}

// objectHeader returns what is stored with the object.
func (w *write) objectHeader() http.Header {
	header := objectHeaders(w.opts)
	for name, values := range w.extra {
		header[name] = values
	}
	return header
}

// whole stores data, which is all of the body.
func (w *write) whole(data []byte) (storage.Info, error) {
	header := w.header()
	k, err := w.store.keys(w.ctx)
	if err != nil {
		return storage.Info{}, err
	}
	sum, md5sum := w.opts.Checksums.SHA256, w.opts.Checksums.MD5
	if sum == nil && w.query == nil && len(data) >= checksumFrom && w.store.verifies(k) {
		if !hasChecksum(header) {
			header[crc32Header] = []string{encodeCRC32(crc32.ChecksumIEEE(data))}
		}
		return w.put(header, unsignedPayload, fromBytes(data), int64(len(data)))
	}
	if sum == nil {
		computed := sha256.Sum256(data)
		sum = computed[:]
	}
	if md5sum == nil && k.id == "" {
		// Nothing is signed, so nobody need look at the SHA-256.
		computed := md5.Sum(data)
		md5sum = computed[:]
	}
	if md5sum != nil {
		header["Content-Md5"] = []string{base64.StdEncoding.EncodeToString(md5sum)}
	}
	return w.put(header, hex.EncodeToString(sum), fromBytes(data), int64(len(data)))
}

// stream stores a body of size bytes without holding it.
func (w *write) stream(size int64) (storage.Info, error) {
	header := w.header()
	if size > expectFrom {
		header["Expect"] = []string{"100-continue"}
	}
	sums := w.opts.Checksums
	plain := &content{Content: wire.Content{Length: size, Body: w.body}, open: func(signature) io.Reader { return w.body }}
	k, err := w.store.keys(w.ctx)
	if err != nil {
		return storage.Info{}, err
	}
	verifies := w.query == nil && w.store.verifies(k)
	switch {
	case sums.SHA256 != nil && k.id != "":
		return w.put(header, hex.EncodeToString(sums.SHA256), plain, size)
	case verifies && hasChecksum(header):
		return w.put(header, unsignedPayload, plain, size)
	case sums.MD5 != nil:
		header["Content-Md5"] = []string{base64.StdEncoding.EncodeToString(sums.MD5)}
		return w.put(header, unsignedPayload, plain, size)
	}
	payload, signed := signedChunks, k.id != "" && !verifies
	if signed {
		addChunks(header, w.opts.Headers.ContentEncoding, size)
	} else {
		payload = unsignedTrailer
		addTrailer(header, w.opts.Headers.ContentEncoding, size)
	}
	var encoder *chunked
	c := &content{Content: wire.Content{Length: chunkedLength(size, signed), Body: w.body}, open: func(sig signature) io.Reader {
		if !signed {
			sig = signature{}
		}
		encoder = newChunked(w.body, sig)
		return encoder
	}}
	defer func() {
		if encoder != nil {
			encoder.release()
		}
	}()
	return w.put(header, payload, c, size)
}

func (w *write) put(header http.Header, payload string, c *content, size int64) (storage.Info, error) {
	got, _, err := w.send(w.ctx, &request{method: http.MethodPut, header: header, payload: payload, query: w.query}, c)
	if err != nil {
		return storage.Info{}, err
	}
	return w.info(size, got, got.Get("ETag")), nil
}

// info describes what was stored. The time is that of the answer.
func (w *write) info(size int64, answer http.Header, etag string) storage.Info {
	info := storage.Info{
		Key: w.key, Size: size, ETag: wire.Unquote(etag),
		Headers: w.opts.Headers, Metadata: w.opts.Metadata, Checksums: w.opts.Checksums, TagCount: len(w.opts.Tags),
	}
	if date, err := http.ParseTime(answer.Get("Date")); err == nil {
		info.ModTime = date.UTC()
	}
	return info
}

// fromBytes returns data as content that can be sent again.
func fromBytes(data []byte) *content {
	return &content{Content: wire.Content{Length: int64(len(data)), Again: true}, open: func(signature) io.Reader { return bytes.NewReader(data) }}
}

package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/suaveplan/storagemux/internal/storage"
)

// What tells the store that it has a whole body, the commit token, is
//
//   - the body's SHA-256 or MD5 in a signed header, where it is known, or where
//     the body is so small that it is read first;
//   - else a signature on each chunk, the last of which is empty, which every S3
//     service knows since 2013; without credentials a checksum in a trailer;
//   - of a body of unknown length, each part's SHA-256, and the list of parts.
//
// An unsigned body without a digest is never sent: some servers store what has
// arrived of it when the connection breaks.

const (
	// smallBody is what is read before a request is made.
	smallBody = 64 << 10
	// partSize is the size of the parts of a body of unknown length, the
	// smallest that S3 allows. It is what such a write holds in memory.
	partSize = 5 << 20
	maxParts = 10_000
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
	r, err := storage.OpenBody(ctx, op, b, withoutVerified(opts.Checksums))
	if err != nil {
		return storage.Info{}, err
	}
	defer r.Close()
	w := &write{store: s, ctx: ctx, op: op, key: key, opts: opts, body: r}
	if size > smallBody {
		return w.stream(size)
	}
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
	defer partBuffers.Put(part)
	copy(part[:], buffer[:])
	n, err = io.ReadFull(r, part[len(buffer):])
	n += len(buffer)
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return w.whole(part[:n])
	case err != nil:
		return storage.Info{}, err
	}
	return w.parts(part)
}

// withoutVerified returns those checksums that no server can be relied on to
// verify.
func withoutVerified(c storage.Checksums) storage.Checksums {
	switch {
	case c.SHA256 != nil:
		c.SHA256 = nil
	case c.MD5 != nil:
		c.MD5 = nil
	}
	return c
}

// write is one SetStream.
type write struct {
	store *Storage
	ctx   context.Context
	op    string
	key   string
	opts  storage.SetOptions
	body  *storage.Reader
}

// send sends r, whose content is c, and returns the answer's headers. It
// returns when the transport has let go of the content.
func (w *write) send(r *request, c *content) (http.Header, []byte, error) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	r.op, r.key, r.content, r.write = w.op, w.key, c, true
	resp, err := w.store.send(ctx, r)
	var answer []byte
	var header http.Header
	if err == nil {
		header = resp.Header
		answer, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		_ = resp.Body.Close()
		if err != nil {
			err = unanswered(w.ctx, w.op, w.key, err, true)
		}
	}
	if c != nil {
		if err != nil {
			cancel()
			_ = w.body.Close()
		}
		c.readers.Wait()
	}
	// The body's own fault comes first: it is why the request broke.
	if broken := w.body.Err(); broken != nil {
		return nil, nil, broken
	}
	return header, answer, err
}

// whole stores data, which is all of the body.
func (w *write) whole(data []byte) (storage.Info, error) {
	header := objectHeaders(w.opts)
	addConditions(header, w.opts.Conditions)
	addChecksum(header, w.opts.Checksums)
	k, err := w.store.keys(w.ctx)
	if err != nil {
		return storage.Info{}, err
	}
	sum, md5sum := w.opts.Checksums.SHA256, w.opts.Checksums.MD5
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
	header := objectHeaders(w.opts)
	addConditions(header, w.opts.Conditions)
	addChecksum(header, w.opts.Checksums)
	if size > expectFrom {
		header["Expect"] = []string{"100-continue"}
	}
	sums := w.opts.Checksums
	plain := &content{length: size, open: func(signature) io.Reader { return w.body }}
	k, err := w.store.keys(w.ctx)
	switch {
	case err != nil:
		return storage.Info{}, err
	case sums.SHA256 != nil && k.id != "":
		return w.put(header, hex.EncodeToString(sums.SHA256), plain, size)
	case sums.MD5 != nil:
		header["Content-Md5"] = []string{base64.StdEncoding.EncodeToString(sums.MD5)}
		return w.put(header, unsignedPayload, plain, size)
	}
	signed := k.id != ""
	payload := signedChunks
	encoding := "aws-chunked"
	if stored := w.opts.Headers.ContentEncoding; stored != "" {
		encoding = "aws-chunked," + stored
	}
	header["Content-Encoding"] = []string{encoding}
	header["X-Amz-Decoded-Content-Length"] = []string{strconv.FormatInt(size, 10)}
	if !signed {
		payload = unsignedTrailer
		header["X-Amz-Trailer"] = []string{trailerName}
	}
	var encoder *chunked
	c := &content{length: chunkedLength(size, signed), open: func(sig signature) io.Reader {
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
	got, _, err := w.send(&request{method: http.MethodPut, header: header, payload: payload}, c)
	if err != nil {
		return storage.Info{}, err
	}
	return w.info(size, got, got.Get("ETag")), nil
}

// info describes what was stored. The time is that of the answer.
func (w *write) info(size int64, answer http.Header, etag string) storage.Info {
	info := storage.Info{
		Key: w.key, Size: size, ETag: unquote(etag),
		Headers: w.opts.Headers, Metadata: w.opts.Metadata, Checksums: w.opts.Checksums,
	}
	if date, err := http.ParseTime(answer.Get("Date")); err == nil {
		info.ModTime = date.UTC()
	}
	return info
}

// fromBytes returns data as content that can be sent again.
func fromBytes(data []byte) *content {
	return &content{length: int64(len(data)), again: true, open: func(signature) io.Reader { return bytes.NewReader(data) }}
}

// parts stores a body of unknown length of which first holds the start.
func (w *write) parts(first *[partSize]byte) (info storage.Info, err error) {
	if !w.opts.Conditions.IsZero() {
		if err := w.hold(); err != nil {
			return storage.Info{}, err // spares the reading of the body; complete decides
		}
	}
	header := objectHeaders(w.opts)
	_, answer, err := w.send(&request{method: http.MethodPost, header: header, query: query{{"uploads", ""}}}, nil)
	if err != nil {
		return storage.Info{}, err
	}
	var created struct{ UploadId string }
	if err := xml.Unmarshal(answer, &created); err != nil || created.UploadId == "" {
		return storage.Info{}, storage.Errorf(storage.CodeUnavailable, w.op, "the store began no upload for %q", w.key).WithCause(err)
	}
	done := false
	defer func() {
		if !done {
			w.store.abortLater(w.key, created.UploadId)
		}
	}()
	var list []part
	data, size, end := first[:], int64(0), false
	for {
		etag, err := w.part(created.UploadId, len(list)+1, data)
		if err != nil {
			return storage.Info{}, err
		}
		list = append(list, part{Number: len(list) + 1, ETag: etag})
		size += int64(len(data))
		if end {
			break
		}
		n, err := io.ReadFull(w.body, first[:])
		switch {
		case err == io.EOF:
			n = 0
		case err == io.ErrUnexpectedEOF:
			end = true
		case err != nil:
			return storage.Info{}, err
		}
		if n == 0 {
			break
		}
		if len(list) == maxParts {
			return storage.Info{}, storage.Errorf(storage.CodeTooLarge, w.op, "%q has more than the %d bytes that a body of unknown length can have", w.key, int64(maxParts)*partSize)
		}
		data = first[:n]
	}
	answerHeader, etag, err := w.complete(created.UploadId, list)
	// An upload that may have become the object is not touched.
	done = err == nil || outcomeOf(err) == storage.OutcomeUnknown
	if err != nil {
		return storage.Info{}, err
	}
	return w.info(size, answerHeader, etag), nil
}

// hold checks the conditions against what is there now.
func (w *write) hold() error {
	info, err := w.store.Stat(w.ctx, w.key, storage.StatOptions{})
	if missing := storage.CodeOf(err) == storage.CodeKeyNotFound; missing || err == nil {
		return w.opts.Conditions.CheckWrite(!missing, info)
	}
	return err
}

func outcomeOf(err error) storage.Outcome {
	var e *storage.Error
	if errors.As(err, &e) {
		return e.Outcome
	}
	return storage.OutcomeNone
}

type part struct {
	Number int    `xml:"PartNumber"`
	ETag   string `xml:"ETag"`
}

func (w *write) part(upload string, number int, data []byte) (etag string, err error) {
	sum := sha256.Sum256(data)
	got, _, err := w.send(&request{
		method: http.MethodPut, payload: hex.EncodeToString(sum[:]),
		query: query{{"partNumber", strconv.Itoa(number)}, {"uploadId", upload}},
	}, fromBytes(data))
	if err != nil {
		// Parts are no object: whatever became of one, the write had no effect.
		if e, ok := err.(*storage.Error); ok {
			e.Outcome = storage.OutcomeNone
		}
		return "", err
	}
	return got.Get("ETag"), nil
}

func (w *write) complete(upload string, list []part) (answer http.Header, etag string, err error) {
	doc, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Part    []part
	}{Part: list})
	if err != nil {
		return nil, "", err
	}
	header := make(http.Header, 8)
	addConditions(header, w.opts.Conditions)
	sum := sha256.Sum256(doc)
	answer, body, err := w.send(&request{
		method: http.MethodPost, header: header, payload: hex.EncodeToString(sum[:]), query: query{{"uploadId", upload}},
	}, fromBytes(doc))
	if err != nil {
		return nil, "", err
	}
	// A store that began to answer before it was done can fail with a 200.
	if code, message := parseError(body); code != "" {
		a := answerOf(code, message)
		return nil, "", a.error(w.op, w.key)
	}
	var result struct{ ETag string }
	if err := xml.Unmarshal(body, &result); err != nil {
		return nil, "", unanswered(w.ctx, w.op, w.key, err, true)
	}
	return answer, result.ETag, nil
}

// answerOf is an error that came without a status of its own.
func answerOf(code, message string) answer {
	a := answer{status: http.StatusInternalServerError, code: code, message: message}
	if _, known := meanings[code]; known {
		a.status = http.StatusOK
	}
	return a
}

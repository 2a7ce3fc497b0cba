package s3

import (
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
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// cleanUpTimeout bounds the removal of what a failed upload left in the store,
// and before it the wait for the answer to its last request.
const cleanUpTimeout = 10 * time.Second

// parts stores a body of unknown length of which first holds the start.
func (w *write) parts(first *[partSize]byte) (storage.Info, error) {
	size := int64(0)
	header, etag, err := w.upload(func(upload string) (list []part, err error) {
		data := first[:]
		for len(data) > 0 {
			if len(list) == storage.MaxParts {
				return nil, storage.Errorf(storage.CodeTooLarge, w.op, "%q has more than the %d bytes that a body of unknown length can have", w.key, int64(storage.MaxParts)*partSize)
			}
			next, err := w.part(upload, len(list)+1, data)
			if err != nil {
				return nil, err
			}
			list = append(list, next)
			size += int64(len(data))
			n, err := io.ReadFull(w.body, first[:])
			if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
				return nil, err
			}
			data = first[:n]
		}
		return list, nil
	})
	if err != nil {
		return storage.Info{}, err
	}
	return w.info(size, header, etag), nil
}

// upload makes the object of the parts that fill stores, and leaves nothing
// behind if that fails.
func (w *write) upload(fill func(upload string) ([]part, error)) (answer http.Header, etag string, err error) {
	if !w.opts.Conditions.IsZero() {
		if err := w.hold(); err != nil {
			return nil, "", err // spares the reading of the body; complete decides
		}
	}
	upload, err := w.begin()
	if err != nil {
		return nil, "", err
	}
	completed := false
	defer func() {
		if !completed && !w.handedOver {
			w.store.background.Go(func() { w.store.abort(w.key, upload) })
		}
	}()
	list, err := fill(upload)
	if err != nil {
		return nil, "", err
	}
	answer, etag, err = w.complete(upload, list)
	// An upload that may have become the object is not touched.
	completed = err == nil || outcomeOf(err) == storage.OutcomeUnknown
	return answer, etag, err
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

// reply is what a request of an upload came to.
type reply struct {
	header http.Header
	body   []byte
	err    error
}

// ask sends a request of an upload. If the caller leaves when all of it was
// sent, the store may still act on it, and what it makes then would be left behind:
// so late gets the reply when it comes, in a goroutine of the store's, and the
// upload's end is in its hands.
func (w *write) ask(r *request, c *content, late func(reply)) reply {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.ctx))
	done := make(chan reply, 1)
	w.store.background.Go(func() {
		defer cancel()
		header, body, err := w.send(ctx, r, c)
		done <- reply{header, body, err}
	})
	select {
	case got := <-done:
		return got
	case <-w.ctx.Done():
	}
	interrupted := reply{err: storage.Interrupted(w.ctx, w.op, "waiting for the store")}
	if !c.sent() {
		cancel()
		<-done
		return interrupted
	}
	w.handedOver = true
	w.store.background.Go(func() {
		stop := time.AfterFunc(cleanUpTimeout, cancel)
		defer stop.Stop()
		late(<-done)
	})
	return interrupted
}

// begin begins an upload and returns its id.
func (w *write) begin() (upload string, err error) {
	got := w.ask(&request{method: http.MethodPost, header: w.objectHeader(), query: query{{"uploads", ""}}}, nil, func(got reply) {
		if upload := got.upload(); upload != "" {
			w.store.abort(w.key, upload)
		}
	})
	if got.err != nil {
		return "", withoutEffect(got.err)
	}
	if upload = got.upload(); upload == "" {
		return "", storage.Errorf(storage.CodeUnavailable, w.op, "the store began no upload for %q", w.key)
	}
	return upload, nil
}

func (r reply) upload() string {
	var created struct{ UploadId string }
	if r.err != nil || xml.Unmarshal(r.body, &created) != nil {
		return ""
	}
	return created.UploadId
}

type part struct {
	Number int    `xml:"PartNumber"`
	ETag   string `xml:"ETag"`
}

// partQuery names a part of an upload.
func partQuery(upload string, number int) query {
	return query{{"partNumber", strconv.Itoa(number)}, {"uploadId", upload}}
}

func (w *write) part(upload string, number int, data []byte) (part, error) {
	sum := sha256.Sum256(data)
	header := make(http.Header, 8)
	if w.store.anonymous {
		// Nothing is signed, so nobody need look at the SHA-256.
		md5sum := md5.Sum(data)
		header["Content-Md5"] = []string{base64.StdEncoding.EncodeToString(md5sum[:])}
	}
	got := w.ask(&request{
		method: http.MethodPut, payload: hex.EncodeToString(sum[:]), header: header, query: partQuery(upload, number),
	}, fromBytes(data), func(reply) { w.store.abort(w.key, upload) })
	if got.err != nil {
		return part{}, withoutEffect(got.err)
	}
	return part{Number: number, ETag: got.header.Get("ETag")}, nil
}

// withoutEffect says of the error of a request that makes no object that
// nothing has become visible, whatever came of it.
func withoutEffect(err error) error {
	var e *storage.Error
	if errors.As(err, &e) {
		e.Outcome = storage.OutcomeNone
	}
	return err
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
	if whole := w.opts.Checksums.CRC64NVME; whole != nil {
		// The one kind for which an upload need not be begun in a special way.
		addChecksum(header, storage.Checksums{CRC64NVME: whole})
	}
	sum := sha256.Sum256(doc)
	got := w.ask(&request{
		method: http.MethodPost, header: header, payload: hex.EncodeToString(sum[:]), query: query{{"uploadId", upload}},
	}, fromBytes(doc), func(got reply) {
		if !w.kept && (got.err != nil && outcomeOf(got.err) == storage.OutcomeNone || got.err == nil && got.failure() != nil) {
			w.store.abort(w.key, upload)
		}
	})
	switch {
	case got.err != nil && w.handedOver:
		e := storage.Interrupted(w.ctx, w.op, "completing the upload")
		e.Outcome = storage.OutcomeUnknown
		return nil, "", e
	case got.err != nil:
		return nil, "", got.err
	}
	if a := got.failure(); a != nil {
		return nil, "", a.error(w.op, w.key)
	}
	var result struct {
		XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
		ETag    string
	}
	if err := xml.Unmarshal(got.body, &result); err != nil {
		return nil, "", wire.Unanswered(w.ctx, w.op, w.key, err, true)
	}
	return got.header, result.ETag, nil
}

// failure returns the error in an answer of 200: a store that began to answer
// before it was done has no other way to say that it failed.
func (r reply) failure() *answer {
	code, message := parseError(r.body)
	if code == "" {
		return nil
	}
	a := &answer{status: http.StatusInternalServerError, code: code, message: message}
	if _, known := meanings[code]; known {
		a.status = http.StatusOK
	}
	return a
}

// abort removes the parts of an upload.
func (s *Storage) abort(key, upload string) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanUpTimeout)
	defer cancel()
	_ = s.abortOnce(ctx, "Abort", key, upload)
}

func (s *Storage) abortOnce(ctx context.Context, op, key, upload string) error {
	resp, err := s.send(ctx, &request{op: op, method: http.MethodDelete, key: key, query: query{{"uploadId", upload}}})
	if err == nil {
		wire.Drain(resp)
	}
	return err
}

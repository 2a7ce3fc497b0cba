package s3

import (
	"encoding/xml"
	"net/http"
	"time"
)

// answerSlowly answers with the document that find makes. Where that takes
// long, the head of a success and white space are sent ahead, so that no client
// and nothing between gives up; an error is then told within the success, as S3
// does and clients expect of these operations.
func (q *request) answerSlowly(find func() (document, error)) error {
	type found struct {
		document
		err      error
		panicked any
	}
	result := make(chan found, 1)
	go func() {
		var r found
		// A panic goes on in net/http's goroutine, which survives it.
		defer func() { r.panicked = recover(); result <- r }()
		r.document, r.err = find()
	}()
	ticker := time.NewTicker(q.h.keepAlive)
	defer ticker.Stop()
	for {
		select {
		case r := <-result:
			switch {
			case r.panicked != nil:
				panic(r.panicked)
			case r.err == nil && !q.begun:
				q.servedBy(q.stats.ServedBy)
				return q.writeDocument(http.StatusOK, r.document)
			case r.err == nil:
				defer r.release()
				return q.writeRest(r.document)
			case !q.begun:
				return r.err
			}
			return q.failWithin(r.err)
		case <-ticker.C:
			if err := q.sendAhead(); err != nil {
				// The client is gone, so the context ends what find does.
				r := <-result
				if r.err == nil {
					r.release()
				}
				return err
			}
		}
	}
}

// sendAhead sends the beginning of an answer that is not there yet.
func (q *request) sendAhead() error {
	if !q.begun {
		q.w.Header()["Content-Type"] = []string{"application/xml"}
		q.begin(http.StatusOK)
		if _, err := q.w.Write([]byte(xml.Header)); err != nil {
			return err
		}
	}
	q.client.armWrite()
	if _, err := q.w.Write([]byte(" ")); err != nil {
		return err
	}
	return q.client.controller.Flush()
}

// writeRest sends a document whose declaration was sent ahead.
func (q *request) writeRest(d document) error {
	q.client.armWrite()
	n, err := q.w.Write(d.buf.Bytes()[len(xml.Header):])
	q.stats.BytesOut += int64(n)
	return err
}

// failWithin tells an error in the body of an answer that began as a success.
func (q *request) failWithin(err error) error {
	e := toAPIError(err)
	q.failure = err
	q.stats.ErrorCode, q.stats.StorageCode, q.stats.Status = e.Code, string(e.StorageCode), e.Status
	d := q.errorDocument(e)
	defer d.release()
	return q.writeRest(d)
}

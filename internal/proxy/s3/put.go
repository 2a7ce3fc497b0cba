package s3

import (
	"context"
	"net/http"

	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
	"github.com/suaveplan/storagemux/internal/storage"
)

func putObject(q *request) error {
	capabilities := q.cfg.Storage.Capabilities()
	options, err := q.setOptions(capabilities)
	if err != nil {
		return err
	}
	if options.Tags, err = headerTags(q.r.Header, capabilities); err != nil {
		return err
	}
	var info storage.Info
	err = q.store(func(ctx context.Context, body storage.Body, sums storage.Checksums) (err error) {
		options.Checksums = sums
		info, err = q.cfg.Storage.SetStream(ctx, q.target.key, body, options)
		return err
	})
	if err != nil {
		return err
	}
	q.servedBy(info.ServedBy)
	q.stored(clientETag(info, capabilities.Identity))
	return nil
}

// stored answers that the content of the request's body is stored.
func (q *request) stored(etag string) {
	header := q.w.Header()
	header["ETag"] = []string{quote(etag)}
	q.body.Checksums(func(name, value string) {
		header[name] = []string{value}
		header["x-amz-checksum-type"] = []string{"FULL_OBJECT"}
	})
	q.done(http.StatusOK)
}

// done answers without a body.
func (q *request) done(status int) {
	if status != http.StatusNoContent {
		q.w.Header()["Content-Length"] = []string{"0"}
	}
	q.begin(status)
}

// setOptions reads what a PUT says of the object besides its content and tags.
func (q *request) setOptions(capabilities storage.Capabilities) (storage.SetOptions, error) {
	if err := refuseUnkept(q.r.Header); err != nil {
		return storage.SetOptions{}, err
	}
	conditions, err := writeConditions(q.r.Header, capabilities)
	if err != nil {
		return storage.SetOptions{}, err
	}
	metadata, err := parseMetadata(q.r.Header)
	if err != nil {
		return storage.SetOptions{}, err
	}
	return storage.SetOptions{Headers: parseHeaders(q.r.Header), Metadata: metadata, Conditions: conditions}, nil
}

// openBody makes the verifying reader over the request's body, which must have
// a length of at most limit.
func (q *request) openBody(limit int64) (*sigv4.Payload, error) {
	payload, err := sigv4.ParsePayload(q.r, q.contentSHA256)
	if err != nil {
		return nil, err
	}
	switch {
	case payload.Size < 0:
		return nil, refuse("MissingContentLength", http.StatusLengthRequired, "You must provide the Content-Length HTTP header.")
	case payload.Size > limit:
		return nil, refuse("EntityTooLarge", http.StatusBadRequest, "Your proposed upload exceeds the maximum allowed size of %d bytes.", limit)
	}
	q.body = sigv4.NewBody(clientReader{q.client, q.r.Body}, payload, q.auth)
	return payload, nil
}

// writeFunc hands a content to a storage, with the digests that are known of it.
type writeFunc func(ctx context.Context, body storage.Body, sums storage.Checksums) error

// store writes the request's body. A small one is verified first and can be
// replayed; of a longer one the storage gets the last piece only once all of it
// was verified.
func (q *request) store(write writeFunc) error {
	payload, err := q.openBody(q.cfg.maxObjectBytes())
	if err != nil {
		return err
	}
	if payload.Size <= smallBytes {
		small := newSmallBody(payload.Size)
		defer small.release()
		if err := q.body.ReadFull(small.content()); err != nil {
			return err
		}
		return write(q.r.Context(), small, storage.Checksums(q.body.Sums()))
	}
	err = write(q.r.Context(), &streamedBody{request: q}, storage.Checksums(payload.Known()))
	// What is wrong with the body is the client's affair, whatever the storage
	// made of it, and a success without the whole body would be none.
	if bodyErr := q.body.Err(); bodyErr != nil {
		return bodyErr
	}
	if err == nil && !q.body.Verified() {
		return refuse(internalError.code, internalError.status, "The content was not read to its end.")
	}
	return err
}

package s3

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// parseCopySource reads x-amz-copy-source: bucket and key, percent-encoded,
// with or without a slash before them.
func parseCopySource(value string) (bucket, key string, err error) {
	value, version, _ := strings.Cut(value, "?versionId=")
	decoded, err := url.PathUnescape(value)
	if err != nil {
		return "", "", invalidArgument("The copy source is not encoded as it must be.")
	}
	bucket, key, ok := strings.Cut(strings.TrimPrefix(decoded, "/"), "/")
	switch {
	case !ok || bucket == "" || key == "":
		return "", "", invalidArgument("The copy source must have the form bucket/key.")
	case version != "" && version != "null":
		return "", "", refuse("NoSuchVersion", http.StatusNotFound, "The bucket keeps no versions.")
	}
	return bucket, key, nil
}

// copySource checks the source of a copy and returns its key.
func (q *request) copySource() (string, error) {
	bucket, key, err := parseCopySource(q.r.Header.Get("X-Amz-Copy-Source"))
	if err != nil {
		return "", err
	}
	if bucket != q.cfg.Bucket {
		return "", refuse("NoSuchBucket", http.StatusNotFound, "The bucket of the copy source does not exist here.")
	}
	return key, checkKey(key)
}

func copyObject(q *request) error {
	source, err := q.copySource()
	if err != nil {
		return err
	}
	capabilities := q.cfg.Storage.Capabilities()
	options, err := q.setOptions(capabilities)
	if err != nil {
		return err
	}
	replace := false
	switch directive := q.r.Header.Get("X-Amz-Metadata-Directive"); directive {
	case "", "COPY":
	case "REPLACE":
		replace = true
	default:
		return invalidArgument("The metadata directive must be COPY or REPLACE.")
	}
	if source == q.target.key && !replace {
		return refuse("InvalidRequest", http.StatusBadRequest,
			"This copy request is illegal because it is trying to copy an object to itself without changing its metadata.")
	}

	object, err := q.openSource(source, nil, capabilities)
	if err != nil {
		return err
	}
	body := q.copyBody(source, nil, object)
	defer body.close()
	if body.Size() > q.cfg.maxObjectBytes() {
		return q.sourceTooLarge()
	}
	if !replace {
		options.Headers, options.Metadata = object.Headers, withoutOwn(object.Metadata)
	}
	options.Checksums = object.Checksums
	return q.answerSlowly(func() (document, error) {
		info, err := q.cfg.Storage.SetStream(q.r.Context(), q.target.key, body, options)
		if err != nil {
			return document{}, err
		}
		q.stats.ServedBy = info.ServedBy
		return copyResult("CopyObjectResult", clientETag(info, capabilities.Identity), info.ModTime), nil
	})
}

func (q *request) sourceTooLarge() error {
	return refuse("InvalidRequest", http.StatusBadRequest, "The copy source is larger than the maximum of %d bytes.", q.cfg.maxObjectBytes())
}

func copyResult(root, etag string, modified time.Time) document {
	if modified.IsZero() {
		modified = time.Now()
	}
	d := newDocument()
	d.root(root)
	d.time("LastModified", modified)
	d.text("ETag", quote(etag))
	d.close(root)
	return d
}

// openSource opens the source under its conditions. For a copy, whatever does
// not hold is a failed precondition.
func (q *request) openSource(key string, part *storage.Range, capabilities storage.Capabilities) (*storage.Object, error) {
	conditions := parseConditions(q.r.Header, "X-Amz-Copy-Source-")
	forStore, forFront := passConditions(conditions, capabilities.Identity)
	object, err := q.cfg.Storage.GetStream(q.r.Context(), key, storage.GetOptions{Range: part, Conditions: forStore})
	if err == nil {
		if err = checkRead(forFront, object.Info, capabilities.Identity); err != nil {
			_ = object.Body.Close()
		}
	}
	if storage.CodeOf(err) == storage.CodeNotModified {
		return nil, storage.Errorf(storage.CodePreconditionFailed, "GetStream", "condition on the copy source").WithCause(err)
	}
	return object, err
}

func withoutOwn(metadata map[string]string) map[string]string {
	var kept map[string]string
	for name, value := range metadata {
		if strings.HasPrefix(name, ownMetadataPrefix) {
			continue
		}
		if kept == nil {
			kept = make(map[string]string, len(metadata))
		}
		kept[name] = value
	}
	return kept
}

// copyBody is the content of a stored object. Where that has a strong tag that
// every member knows, it can be read again, and then is still the same.
type copyBody struct {
	ctx     context.Context
	storage storage.Storage
	key     string
	part    *storage.Range
	info    storage.Info
	size    int64
	// native says that the tag means the same on every member.
	native bool

	mu    sync.Mutex
	first *storage.Object
}

func (q *request) copyBody(key string, part *storage.Range, object *storage.Object) *copyBody {
	return &copyBody{
		ctx: q.r.Context(), storage: q.cfg.Storage, key: key, part: part,
		info: object.Info, size: object.Length, first: object,
		native: q.cfg.Storage.Capabilities().Identity == storage.IdentityNative,
	}
}

// Open implements storage.Body.
func (b *copyBody) Open() (io.ReadCloser, error) {
	b.mu.Lock()
	first := b.first
	b.first = nil
	b.mu.Unlock()
	if first != nil {
		return first.Body, nil
	}
	if !b.Replayable() {
		return nil, storage.ErrConsumed
	}
	again, err := b.storage.GetStream(b.ctx, b.key, storage.GetOptions{
		Range: b.part, Conditions: storage.Conditions{IfMatch: []string{b.info.ETag}},
	})
	if err != nil {
		return nil, err
	}
	return again.Body, nil
}

// Size implements storage.Body.
func (b *copyBody) Size() int64 { return b.size }

// Replayable implements storage.Body.
func (b *copyBody) Replayable() bool {
	return b.native && b.info.ETag != "" && !strings.HasPrefix(b.info.ETag, "W/")
}

// close closes the source if no store opened it.
func (b *copyBody) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first != nil {
		_ = b.first.Body.Close()
		b.first = nil
	}
}

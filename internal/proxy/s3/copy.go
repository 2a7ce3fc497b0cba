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
	replace, err := directive(q.r.Header, "X-Amz-Metadata-Directive")
	if err != nil {
		return err
	}
	replaceTags, err := directive(q.r.Header, "X-Amz-Tagging-Directive")
	if err != nil {
		return err
	}
	if source == q.target.key && !replace {
		return refuse("InvalidRequest", http.StatusBadRequest,
			"This copy request is illegal because it is trying to copy an object to itself without changing its metadata.")
	}
	if replaceTags {
		if options.Tags, err = headerTags(q.r.Header, capabilities); err != nil {
			return err
		}
	}
	write := func(body *copyBody) (document, error) {
		copied := options
		copied.CopyOf, copied.Checksums = body.of(), body.info.Checksums
		if !replace {
			copied.Headers, copied.Metadata = body.info.Headers, withoutOwn(body.info.Metadata)
		}
		if !replaceTags && body.info.TagCount > 0 && capabilities.Tagging {
			tags, err := storage.GetTags(q.r.Context(), q.cfg.Storage, source)
			if err != nil {
				return document{}, err
			}
			copied.Tags = tags
		}
		info, err := q.cfg.Storage.SetStream(q.r.Context(), q.target.key, body, copied)
		if err != nil {
			return document{}, err
		}
		q.stats.ServedBy = info.ServedBy
		return copyResult("CopyObjectResult", clientETag(info, capabilities.Identity), info.ModTime), nil
	}
	return q.copy(source, nil, !options.Conditions.IsZero(), write)
}

// directive reads whether what goes with an object is replaced in its copy.
func directive(header http.Header, name string) (replace bool, err error) {
	switch header.Get(name) {
	case "", "COPY":
		return false, nil
	case "REPLACE":
		return true, nil
	default:
		return false, invalidArgument("%s must be COPY or REPLACE.", strings.ToLower(name))
	}
}

// copy answers with what write makes of source, or of part of it, under the
// conditions on it. It is described first, and opened only by a member that does
// not copy it inside itself. Where it was overwritten between the two, it is judged
// and copied once more as it is then, but for a write under a condition: that may
// have been done on one of several members.
func (q *request) copy(source string, part *storage.Range, conditional bool, write func(*copyBody) (document, error)) error {
	body, err := q.describeSource(source, part)
	if err != nil {
		return err
	}
	return q.answerSlowly(func() (document, error) {
		d, err := write(body)
		switch {
		case err == nil || !body.overwritten():
			return d, err
		case conditional:
			return document{}, refuse("ConditionalRequestConflict", http.StatusConflict, "The copy source was overwritten while it was copied.")
		}
		body, err := q.openSource(source, part)
		if err != nil {
			return document{}, err
		}
		defer body.close()
		return write(body)
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

// describeSource returns the content of the source, which is not opened, under
// its conditions.
func (q *request) describeSource(key string, part *storage.Range) (*copyBody, error) {
	capabilities := q.cfg.Storage.Capabilities()
	forStore, forFront := q.sourceConditions(capabilities)
	info, err := q.cfg.Storage.Stat(q.r.Context(), key, storage.StatOptions{Conditions: forStore})
	if err == nil {
		err = checkRead(forFront, info, capabilities.Identity)
	}
	size := info.Size
	if err == nil && part != nil {
		_, size, err = part.Resolve(info.Size)
	}
	if err != nil {
		return nil, sourceError(err)
	}
	return q.copyBody(key, part, info, size)
}

// openSource is describeSource for a source that is opened at once, and so is the
// one that was judged.
func (q *request) openSource(key string, part *storage.Range) (*copyBody, error) {
	capabilities := q.cfg.Storage.Capabilities()
	forStore, forFront := q.sourceConditions(capabilities)
	object, err := q.cfg.Storage.GetStream(q.r.Context(), key, storage.GetOptions{Range: part, Conditions: forStore})
	if err != nil {
		return nil, sourceError(err)
	}
	body, err := q.copyBody(key, part, object.Info, object.Length)
	if err == nil {
		err = checkRead(forFront, object.Info, capabilities.Identity)
	}
	if err != nil {
		_ = object.Body.Close()
		return nil, sourceError(err)
	}
	body.first = object
	return body, nil
}

func (q *request) sourceConditions(capabilities storage.Capabilities) (store, front storage.Conditions) {
	return passConditions(parseConditions(q.r.Header, "X-Amz-Copy-Source-"), capabilities.Identity)
}

// sourceError makes of whatever does not hold a failed precondition, as a copy
// has it.
func sourceError(err error) error {
	if storage.CodeOf(err) == storage.CodeNotModified {
		return storage.Errorf(storage.CodePreconditionFailed, "GetStream", "condition on the copy source").WithCause(err)
	}
	return err
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

// copyBody is the content of a stored object. Whoever opens it gets that of the
// object that was judged, or an error.
type copyBody struct {
	ctx     context.Context
	storage storage.Storage
	key     string
	part    *storage.Range
	info    storage.Info
	size    int64
	// native says that the tag means the same on every member, so that the
	// content can be read again.
	native bool

	mu sync.Mutex
	// first is opened already, and for whoever comes first.
	first *storage.Object
	// changed: there was another object when it was opened.
	changed bool
}

func (q *request) copyBody(key string, part *storage.Range, info storage.Info, size int64) (*copyBody, error) {
	if size > q.cfg.maxObjectBytes() {
		return nil, q.sourceTooLarge()
	}
	return &copyBody{
		ctx: q.r.Context(), storage: q.cfg.Storage, key: key, part: part, info: info, size: size,
		native: q.cfg.Storage.Capabilities().Identity == storage.IdentityNative,
	}, nil
}

// of says what it is the content of.
func (b *copyBody) of() *storage.CopyOf {
	of := storage.CopyOf{Source: b.info, Range: b.part}
	of.Source.Key = b.key
	return &of
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
	object, err := b.storage.GetStream(b.ctx, b.key, storage.GetOptions{Range: b.part})
	if err == nil && !b.holds(object.Info) {
		_ = object.Body.Close()
		err = storage.Errorf(storage.CodePreconditionFailed, "GetStream", "the copy source was overwritten")
	}
	switch storage.CodeOf(err) {
	case storage.CodePreconditionFailed, storage.CodeKeyNotFound, storage.CodeInvalidRange:
		b.mu.Lock()
		b.changed = true
		b.mu.Unlock()
	}
	if err != nil {
		return nil, err
	}
	return object.Body, nil
}

// holds reports whether info is of the object that was judged, or at least of one
// with the same content: a copy onto itself may have been made on one of several
// members already.
func (b *copyBody) holds(info storage.Info) bool {
	was := b.info
	tagged := storage.StrongTag(was.ETag)
	switch {
	case was.Size != info.Size:
		return false
	case was.Version != "" && was.Version == info.Version, b.native && tagged && was.ETag == info.ETag:
		return true
	default:
		return was.Version == info.Version && was.ETag == info.ETag && (tagged || was.ModTime.Equal(info.ModTime))
	}
}

// overwritten reports whether the object was not there any more when somebody
// opened it.
func (b *copyBody) overwritten() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// Size implements storage.Body.
func (b *copyBody) Size() int64 { return b.size }

// Replayable implements storage.Body.
func (b *copyBody) Replayable() bool {
	return b.native && storage.StrongTag(b.info.ETag)
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

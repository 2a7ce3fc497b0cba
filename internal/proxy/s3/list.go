package s3

import (
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
	"github.com/suaveplan/storagemux/internal/storage"
)

// listing is a request for a listing, and its page.
type listing struct {
	prefix, delimiter string
	// after is where the page begins: marker, start-after or what the token
	// holds. A token also holds who gave the page before.
	after      string
	pin        storage.ListPin
	maxKeys    int
	encodeURL  bool
	owner      bool
	marker     string
	startAfter string
	token      string
	// element is what stands for an object, and versions says whether it has
	// a version.
	element  string
	versions bool
	page     storage.ListPage
}

func listObjects(q *request) error {
	l, err := q.parseListing()
	if err != nil {
		return err
	}
	l.marker = q.query.Get("marker")
	l.after, l.owner = l.marker, true
	if err := q.listPage(&l); err != nil {
		return err
	}
	d := newDocument()
	d.root("ListBucketResult")
	l.writeHead(d, q.cfg.Bucket)
	d.text("Marker", l.encode(l.marker))
	d.optional("NextMarker", l.encode(l.page.Next))
	l.writeEntries(d, q)
	d.close("ListBucketResult")
	return q.writeDocument(http.StatusOK, d)
}

func listObjectsV2(q *request) error {
	l, err := q.parseListing()
	if err != nil {
		return err
	}
	l.owner = q.query.Get("fetch-owner") == "true"
	l.startAfter = q.query.Get("start-after")
	l.after = l.startAfter
	var resumed bool
	if l.token, resumed = q.query.Lookup("continuation-token"); resumed {
		from, err := q.cfg.openToken(l.token)
		if err != nil {
			return err
		}
		l.after, l.pin.Member = from.last, from.member
	}
	if err := q.listPage(&l); err != nil {
		return err
	}
	d := newDocument()
	d.root("ListBucketResult")
	l.writeHead(d, q.cfg.Bucket)
	d.optional("StartAfter", l.encode(l.startAfter))
	d.optional("ContinuationToken", l.token)
	if l.page.Next != "" {
		d.text("NextContinuationToken", q.cfg.sealToken(place{l.page.Next, l.pin.Member}))
	}
	d.number("KeyCount", int64(len(l.page.Objects)+len(l.page.Prefixes)))
	l.writeEntries(d, q)
	d.close("ListBucketResult")
	return q.writeDocument(http.StatusOK, d)
}

// listVersions lists every object as its null version.
func listVersions(q *request) error {
	l, err := q.parseListing()
	if err != nil {
		return err
	}
	l.marker = q.query.Get("key-marker")
	l.after, l.owner = l.marker, true
	if err := q.listPage(&l); err != nil {
		return err
	}
	d := newDocument()
	d.root("ListVersionsResult")
	l.writeHead(d, q.cfg.Bucket)
	d.text("KeyMarker", l.encode(l.marker))
	d.text("VersionIdMarker", q.query.Get("version-id-marker"))
	if l.page.Next != "" {
		d.text("NextKeyMarker", l.encode(l.page.Next))
		d.text("NextVersionIdMarker", "null")
	}
	l.element, l.versions = "Version", true
	l.writeEntries(d, q)
	d.close("ListVersionsResult")
	return q.writeDocument(http.StatusOK, d)
}

func (q *request) parseListing() (listing, error) {
	l := listing{prefix: q.query.Get("prefix"), delimiter: q.query.Get("delimiter"), maxKeys: storage.MaxListLimit, element: "Contents"}
	if value := q.query.Get("max-keys"); value != "" {
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return l, invalidArgument("max-keys must be a number from 0 to %d.", storage.MaxListLimit)
		}
		l.maxKeys = min(n, storage.MaxListLimit)
	}
	switch encoding := q.query.Get("encoding-type"); encoding {
	case "":
	case "url":
		l.encodeURL = true
	default:
		return l, invalidArgument("The only encoding-type is url.")
	}
	for _, p := range q.query {
		if !utf8.ValidString(p.Value) || strings.IndexByte(p.Value, 0) >= 0 {
			return l, invalidArgument("%s must be valid UTF-8 without NUL.", p.Name)
		}
	}
	return l, nil
}

// listPage reads one page and hides reserved keys from it.
func (q *request) listPage(l *listing) error {
	if l.maxKeys == 0 {
		return nil
	}
	ctx := storage.WithListPin(q.r.Context(), &l.pin)
	options := storage.ListOptions{Prefix: l.prefix, Delimiter: l.delimiter, After: l.after, Limit: l.maxKeys}
	for {
		page, err := q.cfg.Storage.List(ctx, options)
		if err != nil {
			return err
		}
		l.page = hideReserved(page)
		if len(l.page.Objects)+len(l.page.Prefixes) > 0 || page.Next == "" {
			return nil
		}
		// Nothing but reserved keys: go on behind all of them.
		options.After = max(page.Next, lastReserved)
	}
}

// lastReserved sorts behind every reserved key.
const lastReserved = storage.ReservedPrefix + "\U0010FFFF"

func hideReserved(page storage.ListPage) storage.ListPage {
	out := storage.ListPage{Next: page.Next, Objects: page.Objects[:0:0], Prefixes: page.Prefixes[:0:0]}
	hidden := false
	for _, object := range page.Objects {
		hidden = hidden || storage.IsReserved(object.Key)
	}
	for _, prefix := range page.Prefixes {
		hidden = hidden || storage.IsReserved(prefix)
	}
	if !hidden {
		return page
	}
	for _, object := range page.Objects {
		if !storage.IsReserved(object.Key) {
			out.Objects = append(out.Objects, object)
		}
	}
	for _, prefix := range page.Prefixes {
		if !storage.IsReserved(prefix) {
			out.Prefixes = append(out.Prefixes, prefix)
		}
	}
	return out
}

// encode encodes a key for XML if the client asked for it. A space becomes
// %20, which every way of decoding understands.
func (l *listing) encode(s string) string {
	if !l.encodeURL {
		return s
	}
	return sigv4.EscapePath(s)
}

func (l *listing) writeHead(d document, bucket string) {
	d.text("Name", bucket)
	d.text("Prefix", l.encode(l.prefix))
	d.optional("Delimiter", l.encode(l.delimiter))
	d.number("MaxKeys", int64(l.maxKeys))
	if l.encodeURL {
		d.text("EncodingType", "url")
	}
	d.boolean("IsTruncated", l.page.Next != "")
}

func (l *listing) writeEntries(d document, q *request) {
	identity := q.cfg.Storage.Capabilities().Identity
	for _, object := range l.page.Objects {
		d.open(l.element)
		d.text("Key", l.encode(object.Key))
		if l.versions {
			d.text("VersionId", "null")
			d.boolean("IsLatest", true)
		}
		modified := object.ModTime
		if modified.IsZero() {
			modified = q.h.started
		}
		d.time("LastModified", modified)
		d.text("ETag", quote(clientETag(object, identity)))
		d.number("Size", object.Size)
		d.text("StorageClass", "STANDARD")
		if l.owner {
			d.owner("Owner")
		}
		d.close(l.element)
	}
	for _, prefix := range l.page.Prefixes {
		d.open("CommonPrefixes")
		d.text("Prefix", l.encode(prefix))
		d.close("CommonPrefixes")
	}
}

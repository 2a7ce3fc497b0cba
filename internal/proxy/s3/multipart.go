package s3

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"

	"github.com/minio/crc64nvme"

	"github.com/suaveplan/storagemux/internal/storage"
)

// multipart returns the storage's way to take parts.
func (q *request) multipart() (storage.Multipart, error) {
	if m, ok := q.cfg.Storage.(storage.Multipart); ok {
		return m, nil
	}
	return nil, unsupportedWrite("The backends do not take uploads in parts.")
}

// upload returns the storage and its own id of the upload that the request
// names.
func (q *request) upload() (storage.Multipart, string, error) {
	m, err := q.multipart()
	if err != nil {
		return nil, "", err
	}
	id, err := q.cfg.openUpload(q.target.key, q.query.Get("uploadId"))
	return m, id, err
}

func createUpload(q *request) error {
	m, err := q.multipart()
	if err != nil {
		return err
	}
	if err := refuseUnkept(q.r.Header); err != nil {
		return err
	}
	metadata, err := parseMetadata(q.r.Header)
	if err != nil {
		return err
	}
	tags, err := headerTags(q.r.Header, q.cfg.Storage.Capabilities())
	if err != nil {
		return err
	}
	id, err := m.CreateUpload(q.r.Context(), q.target.key, storage.SetOptions{Headers: parseHeaders(q.r.Header), Metadata: metadata, Tags: tags})
	if err != nil {
		return err
	}
	d := newDocument()
	d.root("InitiateMultipartUploadResult")
	d.text("Bucket", q.cfg.Bucket)
	d.text("Key", q.target.key)
	d.text("UploadId", q.cfg.sealUpload(q.target.key, id))
	d.close("InitiateMultipartUploadResult")
	return q.writeDocument(http.StatusOK, d)
}

func (q *request) partNumber() (int, error) {
	number, err := strconv.Atoi(q.query.Get("partNumber"))
	if err != nil || number < 1 || number > storage.MaxParts {
		return 0, invalidArgument("Part number must be an integer between 1 and %d, inclusive.", storage.MaxParts)
	}
	return number, nil
}

func uploadPart(q *request) error {
	number, err := q.partNumber()
	if err != nil {
		return err
	}
	m, id, err := q.upload()
	if err != nil {
		return err
	}
	if err := refuseUnkept(q.r.Header); err != nil {
		return err
	}
	var part storage.Part
	err = q.store(func(ctx context.Context, body storage.Body, sums storage.Checksums) (err error) {
		part, err = m.UploadPart(ctx, q.target.key, id, number, body, storage.SetOptions{Checksums: sums})
		return err
	})
	if err != nil {
		return err
	}
	q.stored(part.ETag)
	return nil
}

func uploadPartCopy(q *request) error {
	number, err := q.partNumber()
	if err != nil {
		return err
	}
	m, id, err := q.upload()
	if err != nil {
		return err
	}
	source, err := q.copySource()
	if err != nil {
		return err
	}
	var part *storage.Range
	if value := q.r.Header.Get("X-Amz-Copy-Source-Range"); value != "" {
		if part = parseRange(value); part == nil || part.First < 0 || part.Last < 0 {
			return invalidArgument("The x-amz-copy-source-range value must be of the form bytes=first-last.")
		}
	}
	return q.copy(source, part, false, func(body *copyBody) (document, error) {
		stored, err := m.UploadPart(q.r.Context(), q.target.key, id, number, body, storage.SetOptions{CopyOf: body.of()})
		if err != nil {
			return document{}, err
		}
		return copyResult("CopyPartResult", stored.ETag, stored.ModTime), nil
	})
}

// parseComplete reads the parts of CompleteMultipartUpload.
func parseComplete(body []byte) ([]storage.Part, error) {
	var parsed struct {
		XMLName xml.Name `xml:"CompleteMultipartUpload"`
		Parts   []struct {
			PartNumber int
			ETag       string
		} `xml:"Part"`
	}
	if err := xml.Unmarshal(body, &parsed); err != nil || len(parsed.Parts) == 0 || len(parsed.Parts) > storage.MaxParts {
		return nil, &apiError{
			Code: "MalformedXML", Status: http.StatusBadRequest,
			Message: "The XML must be a CompleteMultipartUpload of 1 to 10000 parts.", cause: err,
		}
	}
	parts := make([]storage.Part, len(parsed.Parts))
	last := 0
	for i, part := range parsed.Parts {
		if part.PartNumber <= last {
			return nil, refuse("InvalidPartOrder", http.StatusBadRequest, "The list of parts was not in ascending order.")
		}
		last = part.PartNumber
		parts[i] = storage.Part{Number: part.PartNumber, ETag: strings.Trim(strings.TrimSpace(part.ETag), `"`)}
	}
	if last > storage.MaxParts {
		return nil, invalidArgument("Part number must be an integer between 1 and %d, inclusive.", storage.MaxParts)
	}
	return parts, nil
}

// takeChecksums takes the checksum headers out of a CompleteMultipartUpload:
// there they tell of the object, not of the body. Those of checksums of the
// parts, which end in their number, say nothing that entity tags do not.
func takeChecksums(header http.Header) storage.Checksums {
	take := func(name string, size int) []byte {
		value := header.Get(name)
		header.Del(name)
		sum, err := base64.StdEncoding.DecodeString(value)
		if err != nil || len(sum) != size {
			return nil
		}
		return sum
	}
	return storage.Checksums{
		SHA1:      take("X-Amz-Checksum-Sha1", sha1.Size),
		SHA256:    take("X-Amz-Checksum-Sha256", sha256.Size),
		CRC32:     take("X-Amz-Checksum-Crc32", crc32.Size),
		CRC32C:    take("X-Amz-Checksum-Crc32c", crc32.Size),
		CRC64NVME: take("X-Amz-Checksum-Crc64nvme", crc64nvme.Size),
	}
}

func completeUpload(q *request) error {
	m, id, err := q.upload()
	if err != nil {
		return err
	}
	capabilities := q.cfg.Storage.Capabilities()
	conditions, err := writeConditions(q.r.Header, capabilities)
	if err != nil {
		return err
	}
	sums := takeChecksums(q.r.Header)
	body, err := q.readXML(maxXMLBytes)
	if err != nil {
		return err
	}
	parts, err := parseComplete(body)
	if err != nil {
		return err
	}
	return q.answerSlowly(func() (document, error) {
		info, err := m.CompleteUpload(q.r.Context(), q.target.key, id, parts, storage.SetOptions{Conditions: conditions, Checksums: sums})
		if err != nil {
			return document{}, err
		}
		q.stats.ServedBy = info.ServedBy
		d := newDocument()
		d.root("CompleteMultipartUploadResult")
		d.text("Location", "/"+q.cfg.Bucket+"/"+q.target.key)
		d.text("Bucket", q.cfg.Bucket)
		d.text("Key", q.target.key)
		d.text("ETag", quote(clientETag(info, capabilities.Identity)))
		d.close("CompleteMultipartUploadResult")
		return d, nil
	})
}

func abortUpload(q *request) error {
	m, id, err := q.upload()
	if err != nil {
		return err
	}
	if err := m.AbortUpload(q.r.Context(), q.target.key, id); err != nil {
		return err
	}
	q.done(http.StatusNoContent)
	return nil
}

// page reads a parameter that bounds a page.
func (q *request) page(name string) (int, error) {
	value := q.query.Get(name)
	if value == "" {
		return storage.MaxListLimit, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return 0, invalidArgument("%s must be a number from 0 to %d.", name, storage.MaxListLimit)
	}
	return min(n, storage.MaxListLimit), nil
}

func listParts(q *request) error {
	m, id, err := q.upload()
	if err != nil {
		return err
	}
	limit, err := q.page("max-parts")
	if err != nil {
		return err
	}
	after := 0
	if value := q.query.Get("part-number-marker"); value != "" {
		if after, err = strconv.Atoi(value); err != nil || after < 0 {
			return invalidArgument("part-number-marker must be a number.")
		}
	}
	parts, more, err := m.ListParts(q.r.Context(), q.target.key, id, after, max(1, limit))
	if err != nil {
		return err
	}
	if limit == 0 {
		parts, more = nil, false
	}
	d := newDocument()
	d.root("ListPartsResult")
	d.text("Bucket", q.cfg.Bucket)
	d.text("Key", q.target.key)
	d.text("UploadId", q.query.Get("uploadId"))
	d.owner("Initiator")
	d.owner("Owner")
	d.text("StorageClass", "STANDARD")
	d.number("PartNumberMarker", int64(after))
	if more && len(parts) > 0 {
		d.number("NextPartNumberMarker", int64(parts[len(parts)-1].Number))
	}
	d.number("MaxParts", int64(limit))
	d.boolean("IsTruncated", more)
	for _, part := range parts {
		d.open("Part")
		d.number("PartNumber", int64(part.Number))
		d.time("LastModified", part.ModTime)
		d.text("ETag", quote(part.ETag))
		d.number("Size", part.Size)
		d.close("Part")
	}
	d.close("ListPartsResult")
	return q.writeDocument(http.StatusOK, d)
}

func listUploads(q *request) error {
	m, err := q.multipart()
	if err != nil {
		return err
	}
	l, err := q.parseListing()
	if err != nil {
		return err
	}
	limit, err := q.page("max-uploads")
	if err != nil {
		return err
	}
	options := storage.ListUploadsOptions{Prefix: l.prefix, Delimiter: l.delimiter, AfterKey: q.query.Get("key-marker"), Limit: limit}
	if id := q.query.Get("upload-id-marker"); id != "" && options.AfterKey != "" {
		if options.AfterID, err = q.cfg.openUpload(options.AfterKey, id); err != nil {
			return invalidArgument("Invalid uploadId marker.")
		}
	}
	var page storage.UploadPage
	if limit > 0 {
		if page, err = m.ListUploads(q.r.Context(), options); err != nil {
			return err
		}
	}
	d := newDocument()
	d.root("ListMultipartUploadsResult")
	d.text("Bucket", q.cfg.Bucket)
	d.text("KeyMarker", l.encode(options.AfterKey))
	d.text("UploadIdMarker", q.query.Get("upload-id-marker"))
	if page.NextKey != "" {
		d.text("NextKeyMarker", l.encode(page.NextKey))
		if page.NextID != "" {
			d.text("NextUploadIdMarker", q.cfg.sealUpload(page.NextKey, page.NextID))
		}
	}
	d.text("Prefix", l.encode(l.prefix))
	d.optional("Delimiter", l.encode(l.delimiter))
	if l.encodeURL {
		d.text("EncodingType", "url")
	}
	d.number("MaxUploads", int64(limit))
	d.boolean("IsTruncated", page.NextKey != "")
	for _, upload := range page.Uploads {
		if storage.IsReserved(upload.Key) {
			continue
		}
		d.open("Upload")
		d.text("Key", l.encode(upload.Key))
		d.text("UploadId", q.cfg.sealUpload(upload.Key, upload.ID))
		d.owner("Initiator")
		d.owner("Owner")
		d.text("StorageClass", "STANDARD")
		d.time("Initiated", upload.Initiated)
		d.close("Upload")
	}
	for _, prefix := range page.Prefixes {
		d.open("CommonPrefixes")
		d.text("Prefix", l.encode(prefix))
		d.close("CommonPrefixes")
	}
	d.close("ListMultipartUploadsResult")
	return q.writeDocument(http.StatusOK, d)
}

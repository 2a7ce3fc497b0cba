package s3

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
	"github.com/suaveplan/storagemux/internal/storage"
)

const metadataPrefix = "x-amz-meta-"

// ownMetadataPrefix begins names of metadata that StorageMux keeps for itself.
// Clients neither see nor set them.
const ownMetadataPrefix = "storagemux-"

// notHoisted are parameters of a presigned URL that are no headers: those of
// the signature, and checksums, which SDKs compute over the empty body they
// have while they sign.
var notHoisted = setOf("x-amz-algorithm", "x-amz-credential", "x-amz-date", "x-amz-expires", "x-amz-signedheaders",
	"x-amz-signature", "x-amz-security-token", "x-amz-content-sha256", "x-amz-decoded-content-length", "x-amz-trailer")

// hoist puts x-amz- headers that a presigned URL carries in its query where
// they belong.
func hoist(header http.Header, query sigv4.Query) {
	for _, p := range query {
		name := strings.ToLower(p.Name)
		if !strings.HasPrefix(name, "x-amz-") || notHoisted[name] || strings.Contains(name, "checksum") {
			continue
		}
		if header.Get(name) == "" {
			header.Set(name, p.Value)
		}
	}
}

// parseHeaders reads the standard headers to be stored with an object.
func parseHeaders(header http.Header) storage.Headers {
	return storage.Headers{
		ContentType:        header.Get("Content-Type"),
		CacheControl:       header.Get("Cache-Control"),
		ContentDisposition: header.Get("Content-Disposition"),
		ContentEncoding:    withoutChunked(strings.Join(header.Values("Content-Encoding"), ",")),
		ContentLanguage:    header.Get("Content-Language"),
		Expires:            header.Get("Expires"),
	}
}

// withoutChunked removes aws-chunked, which is how the body was sent and not
// what it is.
func withoutChunked(encoding string) string {
	if !strings.Contains(strings.ToLower(encoding), "aws-chunked") {
		return encoding
	}
	var kept []string
	for one := range strings.SplitSeq(encoding, ",") {
		if one = strings.TrimSpace(one); one != "" && !strings.EqualFold(one, "aws-chunked") {
			kept = append(kept, one)
		}
	}
	return strings.Join(kept, ",")
}

// parseMetadata reads the user's metadata.
func parseMetadata(header http.Header) (map[string]string, error) {
	var metadata map[string]string
	size := 0
	for name, values := range header {
		if len(name) <= len(metadataPrefix) || !strings.EqualFold(name[:len(metadataPrefix)], metadataPrefix) {
			continue
		}
		name = strings.ToLower(name[len(metadataPrefix):])
		if strings.HasPrefix(name, ownMetadataPrefix) {
			continue
		}
		if metadata == nil {
			metadata = make(map[string]string)
		}
		metadata[name] = strings.Join(values, ",")
		size += len(name) + len(metadata[name])
	}
	if size > MaxMetadataBytes {
		return nil, refuse("MetadataTooLarge", http.StatusBadRequest, "Your metadata exceeds the limit of %d bytes.", MaxMetadataBytes)
	}
	return metadata, nil
}

// refuseUnkept refuses what a client asks to be kept or done with an object
// and that no backend would do, rather than forget it.
func refuseUnkept(header http.Header) error {
	if class := header.Get("X-Amz-Storage-Class"); class != "" && class != "STANDARD" {
		return refuse("InvalidStorageClass", http.StatusBadRequest, "The only storage class is STANDARD.")
	}
	switch acl := header.Get("X-Amz-Acl"); acl {
	case "", "private", "bucket-owner-full-control", "bucket-owner-read":
	default:
		return aclNotSupported()
	}
	for name := range header {
		switch {
		case strings.HasPrefix(name, "X-Amz-Server-Side-Encryption"):
			return notImplemented("Server-side encryption is set up at the backends, not by a header.")
		case strings.HasPrefix(name, "X-Amz-Grant-"):
			return aclNotSupported()
		case strings.HasPrefix(name, "X-Amz-Object-Lock-"):
			return refuse("InvalidRequest", http.StatusBadRequest, "Bucket is missing Object Lock Configuration.")
		case name == "X-Amz-Website-Redirect-Location":
			return notImplemented("Website redirects are not supported.")
		case name == "X-Amz-Write-Offset-Bytes":
			return notImplemented("Appending to an object is not supported.")
		}
	}
	return nil
}

// overrides are the query parameters with which a GET chooses headers of its
// answer.
var overrides = map[string]string{
	"response-content-type":        "Content-Type",
	"response-content-language":    "Content-Language",
	"response-expires":             "Expires",
	"response-cache-control":       "Cache-Control",
	"response-content-disposition": "Content-Disposition",
	"response-content-encoding":    "Content-Encoding",
}

// writeObjectHeaders sets the headers that describe an object.
func (q *request) writeObjectHeaders(info storage.Info, capabilities storage.Capabilities) {
	header := q.w.Header()
	set := func(name, value string) {
		if value != "" {
			header[name] = []string{value}
		}
	}
	set("Content-Type", info.Headers.ContentType)
	set("Cache-Control", info.Headers.CacheControl)
	set("Content-Disposition", info.Headers.ContentDisposition)
	set("Content-Encoding", info.Headers.ContentEncoding)
	set("Content-Language", info.Headers.ContentLanguage)
	set("Expires", info.Headers.Expires)
	for _, p := range q.query {
		if name, ok := overrides[p.Name]; ok {
			set(name, p.Value)
		}
	}
	if header["Content-Type"] == nil {
		header["Content-Type"] = []string{"binary/octet-stream"}
	}
	modified := info.ModTime
	if modified.IsZero() {
		modified = q.h.started
	}
	header["Last-Modified"] = []string{modified.UTC().Format(http.TimeFormat)}
	header["ETag"] = []string{quote(clientETag(info, capabilities.Identity))}
	if capabilities.Range {
		header["Accept-Ranges"] = []string{"bytes"}
	} else {
		header["Accept-Ranges"] = []string{"none"}
	}
	// Clients take names of metadata as they are spelled, so these are not
	// canonical.
	for name, value := range info.Metadata {
		if !strings.HasPrefix(name, ownMetadataPrefix) {
			header[metadataPrefix+name] = []string{value}
		}
	}
	if info.TagCount > 0 && capabilities.Tagging {
		header["x-amz-tagging-count"] = []string{strconv.Itoa(info.TagCount)}
	}
	q.servedBy(info.ServedBy)
}

// writeChecksums sets the checksums of a whole object, if the client asked.
func (q *request) writeChecksums(sums storage.Checksums) {
	if !strings.EqualFold(q.r.Header.Get("X-Amz-Checksum-Mode"), "ENABLED") {
		return
	}
	header := q.w.Header()
	known := false
	for name, sum := range map[string][]byte{
		"x-amz-checksum-sha1": sums.SHA1, "x-amz-checksum-sha256": sums.SHA256, "x-amz-checksum-crc32": sums.CRC32,
		"x-amz-checksum-crc32c": sums.CRC32C, "x-amz-checksum-crc64nvme": sums.CRC64NVME,
	} {
		if sum != nil {
			header[name] = []string{base64.StdEncoding.EncodeToString(sum)}
			known = true
		}
	}
	if known {
		header["x-amz-checksum-type"] = []string{"FULL_OBJECT"}
	}
}

func contentRange(offset, length, size int64) string {
	b := append(make([]byte, 0, 64), "bytes "...)
	b = append(strconv.AppendInt(b, offset, 10), '-')
	b = append(strconv.AppendInt(b, offset+length-1, 10), '/')
	return string(strconv.AppendInt(b, size, 10))
}

// parseTime reads an HTTP date; one that is none counts as absent, as RFC 9110
// has it.
func parseTime(value string) time.Time {
	if value == "" {
		return time.Time{}
	}
	t, err := http.ParseTime(value)
	if err != nil {
		return time.Time{}
	}
	return t
}

package s3

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

const metadataPrefix = "X-Amz-Meta-"

// infoOf returns what the headers of an answer to GET or HEAD say of key.
func infoOf(key string, size int64, h http.Header) storage.Info {
	info := storage.Info{
		Key: key, Size: size, ETag: wire.Unquote(h.Get("Etag")),
		Headers: storage.Headers{
			ContentType:        h.Get("Content-Type"),
			CacheControl:       h.Get("Cache-Control"),
			ContentDisposition: h.Get("Content-Disposition"),
			ContentEncoding:    withoutChunked(h.Get("Content-Encoding")),
			ContentLanguage:    h.Get("Content-Language"),
			Expires:            h.Get("Expires"),
		},
		Checksums: checksumsOf(h),
	}
	if count := h.Get("X-Amz-Tagging-Count"); count != "" {
		info.TagCount, _ = strconv.Atoi(count)
	}
	if modified, err := http.ParseTime(h.Get("Last-Modified")); err == nil {
		info.ModTime = modified.UTC()
	}
	for name, values := range h {
		if strings.HasPrefix(name, metadataPrefix) {
			if info.Metadata == nil {
				info.Metadata = map[string]string{}
			}
			info.Metadata[strings.ToLower(name[len(metadataPrefix):])] = strings.Join(values, ",")
		}
	}
	return info
}

// withoutChunked removes what servers should not have stored, and some do.
func withoutChunked(encoding string) string {
	if !strings.Contains(encoding, "aws-chunked") {
		return encoding
	}
	var kept []string
	for part := range strings.SplitSeq(encoding, ",") {
		if part = strings.TrimSpace(part); part != "aws-chunked" && part != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ", ")
}

func quoteList(tags []string) string {
	quoted := make([]string, len(tags))
	for i, tag := range tags {
		quoted[i] = wire.Quote(tag)
	}
	return strings.Join(quoted, ", ")
}

// checksumsOf returns the checksums that h gives for the whole content. Those of
// the parts of an upload together, which end in "-" and their number, are none.
func checksumsOf(h http.Header) (c storage.Checksums) {
	if strings.EqualFold(h.Get("X-Amz-Checksum-Type"), "COMPOSITE") {
		return c
	}
	get := func(name string, size int) []byte {
		value, err := base64.StdEncoding.DecodeString(h.Get(name))
		if err != nil || len(value) != size {
			return nil
		}
		return value
	}
	c.SHA1 = get("X-Amz-Checksum-Sha1", 20)
	c.SHA256 = get("X-Amz-Checksum-Sha256", 32)
	c.CRC32 = get("X-Amz-Checksum-Crc32", 4)
	c.CRC32C = get("X-Amz-Checksum-Crc32c", 4)
	c.CRC64NVME = get("X-Amz-Checksum-Crc64nvme", 8)
	return c
}

// addChecksum adds the strongest checksum in c that there is a header for. A
// server takes one at most.
func addChecksum(h http.Header, c storage.Checksums) {
	for _, sum := range []struct {
		name  string
		value []byte
	}{
		{"X-Amz-Checksum-Crc64nvme", c.CRC64NVME}, {"X-Amz-Checksum-Sha256", c.SHA256}, {"X-Amz-Checksum-Sha1", c.SHA1},
		{"X-Amz-Checksum-Crc32c", c.CRC32C}, {"X-Amz-Checksum-Crc32", c.CRC32},
	} {
		if sum.value != nil {
			h.Set(sum.name, base64.StdEncoding.EncodeToString(sum.value))
			return
		}
	}
}

// hasChecksum reports whether h has what addChecksum adds.
func hasChecksum(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "X-Amz-Checksum-") {
			return true
		}
	}
	return false
}

// addConditions adds the headers of RFC 9110, section 13.
func addConditions(h http.Header, c storage.Conditions) {
	if len(c.IfMatch) > 0 {
		h.Set("If-Match", quoteList(c.IfMatch))
	}
	if len(c.IfNoneMatch) > 0 {
		h.Set("If-None-Match", quoteList(c.IfNoneMatch))
	}
	if !c.IfModifiedSince.IsZero() {
		h.Set("If-Modified-Since", c.IfModifiedSince.UTC().Format(http.TimeFormat))
	}
	if !c.IfUnmodifiedSince.IsZero() {
		h.Set("If-Unmodified-Since", c.IfUnmodifiedSince.UTC().Format(http.TimeFormat))
	}
}

// objectHeaders returns the headers with which an object is stored.
func objectHeaders(opts storage.SetOptions) http.Header {
	h := make(http.Header, 12+len(opts.Metadata))
	for name, value := range map[string]string{
		"Content-Type":        opts.Headers.ContentType,
		"Cache-Control":       opts.Headers.CacheControl,
		"Content-Disposition": opts.Headers.ContentDisposition,
		"Content-Encoding":    opts.Headers.ContentEncoding,
		"Content-Language":    opts.Headers.ContentLanguage,
		"Expires":             opts.Headers.Expires,
	} {
		if value != "" {
			h[name] = []string{value}
		}
	}
	for name, value := range opts.Metadata {
		h.Set(metadataPrefix+name, value)
	}
	if len(opts.Tags) > 0 {
		h["X-Amz-Tagging"] = []string{encodeTags(opts.Tags)}
	}
	return h
}

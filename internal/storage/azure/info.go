package azure

import (
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

const (
	metaHeader = "X-Ms-Meta-"
	// expiresMeta keeps the one standard header that the service does not.
	expiresMeta = "storagemux_expires"
)

// names makes the names of metadata what the service asks for: identifiers.
var names = wire.Names{Mark: "x_", Escape: '_', Kept: func(name string) bool {
	for i, r := range name {
		if (r < 'a' || r > 'z') && r != '_' && (r < '0' || r > '9' || i == 0) {
			return false
		}
	}
	return name != ""
}}

func infoOf(key string, size int64, h http.Header) storage.Info {
	info := storage.Info{
		Key: key, Size: size, ETag: wire.Unquote(h.Get("Etag")),
		Headers: storage.Headers{
			ContentType:        h.Get("Content-Type"),
			CacheControl:       h.Get("Cache-Control"),
			ContentDisposition: h.Get("Content-Disposition"),
			ContentEncoding:    h.Get("Content-Encoding"),
			ContentLanguage:    h.Get("Content-Language"),
		},
	}
	if modified, err := http.ParseTime(h.Get("Last-Modified")); err == nil {
		info.ModTime = modified.UTC()
	}
	for name, values := range h {
		meta, is := strings.CutPrefix(name, metaHeader)
		if !is {
			continue
		}
		meta, value := names.From(meta), strings.Join(values, ",")
		if meta == expiresMeta {
			info.Headers.Expires = value
			continue
		}
		if info.Metadata == nil {
			info.Metadata = map[string]string{}
		}
		info.Metadata[meta] = value
	}
	return info
}

// stored is what the SDK wants to be stored with a blob.
func stored(op string, opts storage.SetOptions) (*blob.HTTPHeaders, map[string]*string, error) {
	h := opts.Headers
	headers := &blob.HTTPHeaders{
		BlobContentType: value(h.ContentType), BlobCacheControl: value(h.CacheControl), BlobContentDisposition: value(h.ContentDisposition),
		BlobContentEncoding: value(h.ContentEncoding), BlobContentLanguage: value(h.ContentLanguage), BlobContentMD5: opts.Checksums.MD5,
	}
	metadata := map[string]*string{}
	for name, text := range opts.Metadata {
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			return nil, nil, storage.Errorf(storage.CodeRejected, op, "metadata must be of printable ASCII characters: %s", name)
		}
		metadata[names.To(name)] = &text
	}
	if h.Expires != "" {
		metadata[expiresMeta] = &h.Expires
	}
	return headers, metadata, nil
}

func value(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

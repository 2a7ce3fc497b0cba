package s3

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/suaveplan/storagemux/internal/storage"
)

// clientETag returns the entity tag that clients see, without quotes. It is the
// store's own where every member computes tags from content. Else members give
// different tags for the same content, so it is derived from the version that
// the write gave, then from what the store has, then from size and time.
func clientETag(info storage.Info, identity storage.Identity) string {
	strong := storage.StrongTag(info.ETag)
	if identity == storage.IdentityNative && strong {
		return info.ETag
	}
	if version := cmp.Or(info.Version, info.Metadata[storage.VersionMetadata]); version != "" {
		return deriveETag("version", version)
	}
	if strong {
		return info.ETag
	}
	return deriveETag("stat", strconv.FormatInt(info.Size, 10)+" "+strconv.FormatInt(info.ModTime.Unix(), 10)+" "+info.ETag)
}

// deriveETag makes a tag in the shape that S3 gives uploads in parts. Clients
// compare tags without a dash to the MD5 of the content, and such a tag to
// nothing.
func deriveETag(kind, value string) string {
	sum := sha256.Sum256([]byte(kind + ":" + value))
	return hex.EncodeToString(sum[:16]) + "-1"
}

func quote(etag string) string { return `"` + etag + `"` }

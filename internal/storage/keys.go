package storage

import (
	"strings"
	"unicode/utf8"
)

// MaxKeyBytes is the most bytes a key may have, the limit of S3.
const MaxKeyBytes = 1024

// Keys under ReservedPrefix belong to StorageMux in every backend: they are
// hidden from listings and refused to clients.
const (
	ReservedPrefix = ".storagemux/"
	ReservedTmp    = ReservedPrefix + "tmp/"
	ReservedParts  = ReservedPrefix + "parts/"
	// ProbeKey is what health checks ask for. Nothing is ever stored there.
	ProbeKey = ReservedPrefix + "probe"
)

// VersionMetadata is the metadata under which a mux keeps the version of what
// it wrote. It belongs to the content: a store drops it when a partial write
// changes that.
const VersionMetadata = "storagemux-version"

// ValidateKey returns INVALID_KEY unless key is 1 to MaxKeyBytes bytes of
// valid UTF-8 without a NUL.
func ValidateKey(key string) error {
	switch {
	case key == "":
		return Errorf(CodeInvalidKey, "", "the key must not be empty")
	case len(key) > MaxKeyBytes:
		return Errorf(CodeInvalidKey, "", "the key has %d bytes and must have at most %d", len(key), MaxKeyBytes)
	case !utf8.ValidString(key):
		return Errorf(CodeInvalidKey, "", "the key must be valid UTF-8")
	case strings.IndexByte(key, 0) >= 0:
		return Errorf(CodeInvalidKey, "", "the key must not contain a NUL byte")
	}
	return nil
}

// IsReserved reports whether key belongs to StorageMux itself.
func IsReserved(key string) bool {
	return strings.HasPrefix(key, ReservedPrefix)
}

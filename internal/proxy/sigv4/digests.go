package sigv4

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"strings"

	"github.com/minio/crc64nvme"
)

// Sums are digests of a content in raw bytes; a nil one is unknown.
type Sums struct {
	MD5, SHA1, SHA256        []byte
	CRC32, CRC32C, CRC64NVME []byte
}

// digest is one of the algorithms that a body can be checked with.
type digest int

const (
	digestMD5 digest = iota
	digestSHA1
	digestSHA256
	digestCRC32
	digestCRC32C
	digestCRC64NVME
	digestCount
)

// checksumHeaders are the headers and trailers of each algorithm but MD5,
// whose header is Content-MD5.
var checksumHeaders = [digestCount]string{
	digestSHA1:      "X-Amz-Checksum-Sha1",
	digestSHA256:    "X-Amz-Checksum-Sha256",
	digestCRC32:     "X-Amz-Checksum-Crc32",
	digestCRC32C:    "X-Amz-Checksum-Crc32c",
	digestCRC64NVME: "X-Amz-Checksum-Crc64nvme",
}

var digestNames = [digestCount]string{"Content-MD5", "SHA1", "SHA256", "CRC32", "CRC32C", "CRC64NVME"}

var digestSizes = [digestCount]int{md5.Size, sha1.Size, sha256.Size, crc32.Size, crc32.Size, 8}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newDigest(d digest) hash.Hash {
	switch d {
	case digestMD5:
		return md5.New()
	case digestSHA1:
		return sha1.New()
	case digestSHA256:
		return sha256.New()
	case digestCRC32:
		return crc32.NewIEEE()
	case digestCRC32C:
		return crc32.New(castagnoli)
	default:
		return crc64nvme.New()
	}
}

// digestOfHeader returns the algorithm whose checksum header is called name,
// in any case.
func digestOfHeader(name string) (digest, bool) {
	for d, header := range checksumHeaders {
		if header != "" && strings.EqualFold(name, header) {
			return digest(d), true
		}
	}
	return 0, false
}

// decodeDigest decodes a base64 value of the right length.
func decodeDigest(d digest, value string) ([]byte, bool) {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value))
	return sum, err == nil && len(sum) == digestSizes[d]
}

// hasher computes a set of digests at once.
type hasher struct {
	hashes [digestCount]hash.Hash
}

func (h *hasher) want(d digest) {
	if h.hashes[d] == nil {
		h.hashes[d] = newDigest(d)
	}
}

func (h *hasher) write(p []byte) {
	for _, one := range h.hashes {
		if one != nil {
			_, _ = one.Write(p)
		}
	}
}

// sums returns the digests of what was written.
func (h *hasher) sums() (out [digestCount][]byte) {
	for d, one := range h.hashes {
		if one != nil {
			out[d] = one.Sum(nil)
		}
	}
	return out
}

func toSums(s [digestCount][]byte) Sums {
	return Sums{
		MD5: s[digestMD5], SHA1: s[digestSHA1], SHA256: s[digestSHA256],
		CRC32: s[digestCRC32], CRC32C: s[digestCRC32C], CRC64NVME: s[digestCRC64NVME],
	}
}

// compare checks what a client expects against what was computed.
func compare(expected, computed [digestCount][]byte) error {
	for d, want := range expected {
		if want != nil && !bytes.Equal(want, computed[d]) {
			return errorf(CodeBadDigest, "the %s you specified did not match the calculated checksum", digestNames[d])
		}
	}
	return nil
}

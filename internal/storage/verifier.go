package storage

import (
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"hash"
	"hash/crc32"

	"github.com/minio/crc64nvme"
)

// Verifier computes those digests of a content that Checksums hold, and no
// others. A nil Verifier has nothing to verify.
type Verifier struct{ digests []digest }

type digest struct {
	name string
	hash hash.Hash
	want []byte
}

// NewVerifier returns a Verifier for c, or nil if c is empty.
func NewVerifier(c Checksums) *Verifier {
	if c.isZero() {
		return nil
	}
	var v Verifier
	add := func(name string, want []byte, make func() hash.Hash) {
		if want != nil {
			v.digests = append(v.digests, digest{name, make(), want})
		}
	}
	add("MD5", c.MD5, md5.New)
	add("SHA-1", c.SHA1, sha1.New)
	add("SHA-256", c.SHA256, sha256.New)
	add("CRC-32", c.CRC32, func() hash.Hash { return crc32.NewIEEE() })
	add("CRC-32C", c.CRC32C, func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) })
	add("CRC-64/NVME", c.CRC64NVME, func() hash.Hash { return crc64nvme.New() })
	return &v
}

// Write adds p to the content. It never fails.
func (v *Verifier) Write(p []byte) (int, error) {
	if v != nil {
		for _, d := range v.digests {
			d.hash.Write(p)
		}
	}
	return len(p), nil
}

// Verify returns INVALID_BODY unless the content has each of the digests.
func (v *Verifier) Verify() error {
	if v == nil {
		return nil
	}
	for _, d := range v.digests {
		if got := d.hash.Sum(nil); !bytes.Equal(got, d.want) {
			return Errorf(CodeInvalidBody, "SetStream", "the content's %s is %x and not %x as promised", d.name, got, d.want)
		}
	}
	return nil
}

package s3

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/suaveplan/storagemux/internal/storage"
)

// What clients carry from one request to the next is a version byte and, in
// clear or sealed, a plain value.
const (
	tokenClear  = 1
	tokenSealed = 2
	// maxTokenBytes is beyond every token that we make.
	maxTokenBytes = 2 * storage.MaxUploadIDBytes
)

// seal makes a token of plain that only open with the same purpose takes.
func (c *Config) seal(purpose string, plain []byte) string {
	raw := append([]byte{tokenClear}, plain...)
	if c.Sealer != nil {
		raw = append([]byte{tokenSealed}, c.Sealer.Seal(c.purpose(purpose), plain)...)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (c *Config) open(purpose, token string) ([]byte, bool) {
	if len(token) > maxTokenBytes {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) < 2 {
		return nil, false
	}
	version, raw := raw[0], raw[1:]
	switch {
	case version == tokenClear && c.Sealer == nil:
		return raw, true
	case version == tokenSealed && c.Sealer != nil:
		plain, err := c.Sealer.Open(c.purpose(purpose), raw)
		return plain, err == nil
	default:
		return nil, false
	}
}

func (c *Config) purpose(purpose string) string { return c.Bucket + "\x00" + purpose }

const purposeList = "list"

// place is where a page ended: its last entry, and the member that gave it where
// the pages of a listing come from one.
type place struct{ last, member string }

// sealToken makes a continuation token of the place where a page ended. Neither
// of its parts has a NUL.
func (c *Config) sealToken(p place) string {
	return c.seal(purposeList, []byte(p.last+"\x00"+p.member))
}

func (c *Config) openToken(token string) (place, error) {
	raw, ok := c.open(purposeList, token)
	last, member, _ := strings.Cut(string(raw), "\x00")
	if !ok || last == "" || len(last) > storage.MaxKeyBytes || !utf8.Valid(raw) {
		return place{}, invalidArgument("The continuation token provided is incorrect.")
	}
	return place{last, member}, nil
}

// sealUpload makes the upload id that clients see. It belongs to its key.
func (c *Config) sealUpload(key, upload string) string {
	return c.seal("upload\x00"+key, []byte(upload))
}

func (c *Config) openUpload(key, id string) (string, error) {
	raw, ok := c.open("upload\x00"+key, id)
	if !ok {
		return "", storage.Errorf(storage.CodeUploadNotFound, "", "the upload id was not made here for this key")
	}
	return string(raw), nil
}

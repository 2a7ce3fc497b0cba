package s3

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/suaveplan/storagemux/internal/storage"
)

// A continuation token is a version byte and, in clear or sealed, the last
// entry of the page before.
const (
	tokenClear  = 1
	tokenSealed = 2

	tokenPurpose = "list"
	// maxTokenBytes is beyond every token that we make.
	maxTokenBytes = 4 << 10
)

func (c *Config) sealToken(last string) string {
	raw := append([]byte{tokenClear}, last...)
	if c.Sealer != nil {
		raw = append([]byte{tokenSealed}, c.Sealer.Seal(tokenPurpose+"\x00"+c.Bucket, []byte(last))...)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (c *Config) openToken(token string) (string, error) {
	invalid := invalidArgument("The continuation token provided is incorrect.")
	if len(token) > maxTokenBytes {
		return "", invalid
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) < 2 {
		return "", invalid
	}
	version, raw := raw[0], raw[1:]
	switch {
	case version == tokenClear && c.Sealer == nil:
	case version == tokenSealed && c.Sealer != nil:
		if raw, err = c.Sealer.Open(tokenPurpose+"\x00"+c.Bucket, raw); err != nil {
			return "", invalid
		}
	default:
		return "", invalid
	}
	if len(raw) > storage.MaxKeyBytes || !utf8.Valid(raw) {
		return "", invalid
	}
	return string(raw), nil
}

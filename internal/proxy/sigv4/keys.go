package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"
)

const (
	algorithm   = "AWS4-HMAC-SHA256"
	service     = "s3"
	terminator  = "aws4_request"
	dateLayout  = "20060102"
	stampLayout = "20060102T150405Z"
)

// scope is the credential scope without its access key id.
type scope struct{ date, region string }

func (s scope) String() string {
	return s.date + "/" + s.region + "/" + service + "/" + terminator
}

// parseCredential splits "id/date/region/s3/aws4_request"; the id may contain
// slashes.
func parseCredential(value string) (accessKeyID string, s scope, ok bool) {
	parts := strings.Split(value, "/")
	if len(parts) < 5 {
		return "", scope{}, false
	}
	tail := parts[len(parts)-4:]
	s = scope{date: tail[0], region: tail[1]}
	accessKeyID = strings.Join(parts[:len(parts)-4], "/")
	ok = accessKeyID != "" && len(s.date) == len(dateLayout) && s.region != "" &&
		tail[2] == service && tail[3] == terminator
	return accessKeyID, s, ok
}

func deriveKey(secret string, s scope) [32]byte {
	key := mac([]byte("AWS4"+secret), s.date)
	key = mac(key[:], s.region)
	key = mac(key[:], service)
	return mac(key[:], terminator)
}

func mac(key []byte, message string) (sum [32]byte) {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(message))
	h.Sum(sum[:0])
	return sum
}

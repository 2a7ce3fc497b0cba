package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
)

// chain is the state of a body whose chunks are signed: each signature covers
// the one before, and the first covers that of the request.
type chain struct {
	key      *[32]byte
	stamp    string
	scope    string
	previous string
}

const emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// verifyChunk checks the signature of a chunk whose data has the hash sum.
func (c *chain) verifyChunk(signature string, sum []byte) bool {
	return c.verify("AWS4-HMAC-SHA256-PAYLOAD", emptySHA256+"\n", signature, sum)
}

// verifyTrailer checks the signature of a trailer in canonical form.
func (c *chain) verifyTrailer(signature string, trailer []byte) bool {
	sum := sha256.Sum256(trailer)
	return c.verify("AWS4-HMAC-SHA256-TRAILER", "", signature, sum[:])
}

func (c *chain) verify(kind, middle, signature string, sum []byte) bool {
	buf := make([]byte, 0, 512)
	buf = append(append(buf, kind...), '\n')
	buf = append(append(buf, c.stamp...), '\n')
	buf = append(append(buf, c.scope...), '\n')
	buf = append(append(buf, c.previous...), '\n')
	buf = append(buf, middle...)
	buf = hex.AppendEncode(buf, sum)

	h := hmac.New(sha256.New, c.key[:])
	h.Write(buf)
	var computed [sha256.Size]byte
	want := hex.AppendEncode(buf[:0], h.Sum(computed[:0]))
	if subtle.ConstantTimeCompare(want, []byte(signature)) != 1 {
		return false
	}
	c.previous = signature
	return true
}

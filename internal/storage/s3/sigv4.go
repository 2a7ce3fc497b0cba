package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Values of X-Amz-Content-Sha256 that are no digest.
const (
	unsignedPayload  = "UNSIGNED-PAYLOAD"
	signedChunks     = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	unsignedTrailer  = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
	emptyPayload     = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	amzDateFormat    = "20060102T150405Z"
	signingAlgorithm = "AWS4-HMAC-SHA256"
)

// signer makes signatures of version 4 for one region.
type signer struct {
	region string
	cached atomic.Pointer[signingKey]
}

// signingKey is derived once per day and secret.
type signingKey struct {
	day, secret string
	key         []byte
}

// signature is what the chunks of a body are signed on from.
type signature struct {
	key         []byte
	date, scope string
	value       string // in hex
}

// sign adds the headers that authenticate r, whose X-Amz-Content-Sha256 is
// payload. It signs the host and the headers X-Amz-*, Content-MD5 and Content-Type;
// those added later are not signed.
func (s *signer) sign(r *http.Request, k keys, payload string, now time.Time) signature {
	date := now.UTC().Format(amzDateFormat)
	r.Header["X-Amz-Content-Sha256"] = []string{payload}
	if k.id == "" {
		if payload == emptyPayload || payload == unsignedPayload {
			delete(r.Header, "X-Amz-Content-Sha256")
		}
		return signature{}
	}
	r.Header["X-Amz-Date"] = []string{date}
	if k.token != "" {
		r.Header["X-Amz-Security-Token"] = []string{k.token}
	}
	canonical, signed := canonicalRequest(r, payload)
	scope := date[:8] + "/" + s.region + "/s3/aws4_request"
	digest := sha256.Sum256(canonical)
	sig := signature{key: s.key(date[:8], k.secret), date: date, scope: scope}
	sig.value = hexHMAC(hmac.New(sha256.New, sig.key), signingAlgorithm+"\n"+date+"\n"+scope+"\n"+hex.EncodeToString(digest[:]))
	r.Header["Authorization"] = []string{signingAlgorithm + " Credential=" + k.id + "/" + scope +
		", SignedHeaders=" + signed + ", Signature=" + sig.value}
	return sig
}

func (s *signer) key(day, secret string) []byte {
	if c := s.cached.Load(); c != nil && c.day == day && c.secret == secret {
		return c.key
	}
	key := []byte("AWS4" + secret)
	for _, part := range []string{day, s.region, "s3", "aws4_request"} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	s.cached.Store(&signingKey{day, secret, key})
	return key
}

// canonicalRequest returns the text that is signed and the list of headers in
// it. The URL's raw path and query are canonical by construction.
func canonicalRequest(r *http.Request, payload string) (text []byte, signed string) {
	names := make([]string, 1, 12)
	names[0] = "host"
	for name := range r.Header {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-amz-") || lower == "content-md5" || lower == "content-type" {
			names = append(names, lower)
		}
	}
	slices.Sort(names)
	signed = strings.Join(names, ";")
	text = make([]byte, 0, 1024)
	text = append(text, r.Method...)
	text = append(text, '\n')
	text = append(text, r.URL.EscapedPath()...)
	text = append(text, '\n')
	text = append(text, r.URL.RawQuery...)
	text = append(text, '\n')
	for _, name := range names {
		text = append(text, name...)
		text = append(text, ':')
		if name == "host" {
			text = append(text, r.URL.Host...)
		} else {
			for i, value := range r.Header[http.CanonicalHeaderKey(name)] {
				if i > 0 {
					text = append(text, ',')
				}
				text = appendTrimmed(text, value)
			}
		}
		text = append(text, '\n')
	}
	text = append(text, '\n')
	text = append(text, signed...)
	text = append(text, '\n')
	return append(text, payload...), signed
}

// appendTrimmed appends value with runs of blanks made one and those at its
// ends left out.
func appendTrimmed(text []byte, value string) []byte {
	if !strings.Contains(value, "  ") {
		return append(text, strings.Trim(value, " ")...)
	}
	return append(text, strings.Join(strings.Fields(value), " ")...)
}

func hexHMAC(mac hash.Hash, text string) string {
	mac.Write([]byte(text))
	var sum [sha256.Size]byte
	return hex.EncodeToString(mac.Sum(sum[:0]))
}

package s3

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"net/http"
	"slices"
	"strings"
	"sync"
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
	scope       string
	key         []byte
	// macs are HMACs with this key, to be used again.
	macs sync.Pool
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
	if k.id == "" {
		if payload != emptyPayload && payload != unsignedPayload {
			r.Header["X-Amz-Content-Sha256"] = []string{payload}
		}
		return signature{}
	}
	date := now.UTC().Format(amzDateFormat)
	key := s.key(date[:8], k.secret)
	values := [...]string{payload, date, k.token, ""}
	r.Header["X-Amz-Content-Sha256"], r.Header["X-Amz-Date"] = values[:1:1], values[1:2:2]
	if k.token != "" {
		r.Header["X-Amz-Security-Token"] = values[2:3:3]
	}
	var space [12]signedHeader
	names := signedHeaders(space[:0], r.Header)
	var buffer [1 << 10]byte
	digest := sha256.Sum256(appendCanonical(buffer[:0], r, names, payload))
	text := append(buffer[:0], signingAlgorithm+"\n"...)
	text = append(append(text, date...), '\n')
	text = append(append(text, key.scope...), '\n')
	text = hex.AppendEncode(text, digest[:])
	sig := signature{key: key.key, date: date, scope: key.scope}
	mac, _ := key.macs.Get().(hash.Hash)
	if mac == nil {
		mac = hmac.New(sha256.New, key.key)
	}
	sig.value = hexHMAC(mac, text)
	mac.Reset()
	key.macs.Put(mac)
	text = append(buffer[:0], signingAlgorithm+" Credential="...)
	text = append(append(append(append(text, k.id...), '/'), key.scope...), ", SignedHeaders="...)
	text = append(appendJoined(text, names), ", Signature="...)
	values[3] = string(append(text, sig.value...))
	r.Header["Authorization"] = values[3:]
	return sig
}

func (s *signer) key(day, secret string) *signingKey {
	if c := s.cached.Load(); c != nil && c.day == day && c.secret == secret {
		return c
	}
	k := &signingKey{day: day, secret: secret, scope: day + "/" + s.region + "/s3/aws4_request", key: []byte("AWS4" + secret)}
	for _, part := range []string{day, s.region, "s3", "aws4_request"} {
		mac := hmac.New(sha256.New, k.key)
		mac.Write([]byte(part))
		k.key = mac.Sum(nil)
	}
	s.cached.Store(k)
	return k
}

// lowered are the names of headers that are signed often, as they are signed.
var lowered = map[string]string{
	"Content-Md5": "content-md5", "Content-Type": "content-type",
	"X-Amz-Content-Sha256": "x-amz-content-sha256", "X-Amz-Date": "x-amz-date", "X-Amz-Security-Token": "x-amz-security-token",
	"X-Amz-Decoded-Content-Length": "x-amz-decoded-content-length", "X-Amz-Trailer": "x-amz-trailer",
	"X-Amz-Meta-Storagemux-Version": "x-amz-meta-storagemux-version",
}

// signedHeader is the name of a header as it is signed and as it is in a map.
type signedHeader struct{ lower, name string }

// signedHeaders appends the headers that are signed, and host, in their order.
func signedHeaders(names []signedHeader, header http.Header) []signedHeader {
	names = append(names, signedHeader{lower: "host"})
	for name := range header {
		lower, often := lowered[name]
		if !often && strings.HasPrefix(name, "X-Amz-") {
			lower = strings.ToLower(name)
		}
		if lower != "" {
			names = append(names, signedHeader{lower, name})
		}
	}
	slices.SortFunc(names, func(a, b signedHeader) int { return strings.Compare(a.lower, b.lower) })
	return names
}

// appendCanonical appends the text that is signed, names among it. The URL's raw
// path and query are canonical by construction.
func appendCanonical(text []byte, r *http.Request, names []signedHeader, payload string) []byte {
	text = append(append(text, r.Method...), '\n')
	text = append(append(text, r.URL.EscapedPath()...), '\n')
	text = append(append(text, r.URL.RawQuery...), '\n')
	for _, header := range names {
		text = append(append(text, header.lower...), ':')
		if header.name == "" {
			text = append(text, r.URL.Host...)
		}
		for i, value := range r.Header[header.name] {
			if i > 0 {
				text = append(text, ',')
			}
			text = appendTrimmed(text, value)
		}
		text = append(text, '\n')
	}
	text = append(appendJoined(append(text, '\n'), names), '\n')
	return append(text, payload...)
}

// appendJoined appends names with semicolons between them.
func appendJoined(text []byte, names []signedHeader) []byte {
	for i, header := range names {
		if i > 0 {
			text = append(text, ';')
		}
		text = append(text, header.lower...)
	}
	return text
}

// appendTrimmed appends value with runs of blanks made one and those at its
// ends left out.
func appendTrimmed(text []byte, value string) []byte {
	if !strings.Contains(value, "  ") {
		return append(text, strings.Trim(value, " ")...)
	}
	return append(text, strings.Join(strings.Fields(value), " ")...)
}

func hexHMAC(mac hash.Hash, text []byte) string {
	mac.Write(text)
	var sum [sha256.Size]byte
	return hex.EncodeToString(mac.Sum(sum[:0]))
}

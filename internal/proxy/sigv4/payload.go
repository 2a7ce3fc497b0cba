package sigv4

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
)

// Form is how a body is framed and protected.
type Form int

const (
	// FormUnsigned: plain, of which the signature says nothing.
	FormUnsigned Form = iota
	// FormHash: plain, with the SHA-256 of the whole.
	FormHash
	// FormSignedChunks: chunks that are each signed.
	FormSignedChunks
	// FormSignedChunksTrailer: signed chunks and a signed trailer.
	FormSignedChunksTrailer
	// FormUnsignedTrailer: chunks without signatures, and a trailer.
	FormUnsignedTrailer
)

// Names of the chunked forms in x-amz-content-sha256.
const (
	streamingSigned          = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	streamingSignedTrailer   = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	streamingUnsignedTrailer = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
)

// Chunked reports whether the body is framed in aws-chunks.
func (f Form) Chunked() bool { return f >= FormSignedChunks }

func (f Form) signedChunks() bool {
	return f == FormSignedChunks || f == FormSignedChunksTrailer
}

func (f Form) trailer() bool {
	return f == FormSignedChunksTrailer || f == FormUnsignedTrailer
}

// Payload is what a request's headers say of its body.
type Payload struct {
	// Form is how the body is framed.
	Form Form
	// Size is the length of the content in bytes, or -1 if it is not said.
	Size int64

	contentSHA256 []byte
	expected      [digestCount][]byte
	// trailing are the digests whose values a trailer will bring.
	trailing [digestCount]bool
}

// Known returns the digests that the headers gave. They are the client's word
// until the body has been read.
func (p *Payload) Known() Sums {
	known := p.expected
	if known[digestSHA256] == nil {
		known[digestSHA256] = p.contentSHA256
	}
	return toSums(known)
}

// ParsePayload reads the headers that describe the body of r. contentSHA256 is
// that of Auth, or the header x-amz-content-sha256 where requests need not be
// signed; empty means UNSIGNED-PAYLOAD. Errors are of type *Error.
func ParsePayload(r *http.Request, contentSHA256 string) (*Payload, error) {
	p := &Payload{Size: r.ContentLength}
	if err := p.parseForm(contentSHA256); err != nil {
		return nil, err
	}
	decoded := r.Header.Get("X-Amz-Decoded-Content-Length")
	if p.Form.Chunked() || p.Size < 0 && decoded != "" {
		size, err := strconv.ParseInt(decoded, 10, 64)
		switch {
		case decoded == "":
			return nil, errorf(CodeMissingContentLength, "the header x-amz-decoded-content-length is missing")
		case err != nil || size < 0:
			return nil, errorf(CodeInvalidArgument, "x-amz-decoded-content-length must be a number of bytes")
		}
		p.Size = size
	}
	if value := r.Header.Get("Content-Md5"); value != "" {
		sum, ok := decodeDigest(digestMD5, value)
		if !ok {
			return nil, errorf(CodeInvalidDigest, "the Content-MD5 you specified is not valid")
		}
		p.expected[digestMD5] = sum
	}
	for d, name := range checksumHeaders {
		value := ""
		if name != "" {
			value = r.Header.Get(name)
		}
		if value == "" {
			continue
		}
		sum, ok := decodeDigest(digest(d), value)
		if !ok {
			return nil, errorf(CodeInvalidRequest, "the value of the header %s is not valid", strings.ToLower(name))
		}
		p.expected[d] = sum
	}
	return p, p.parseTrailerNames(r.Header.Get("X-Amz-Trailer"))
}

func (p *Payload) parseForm(value string) error {
	switch value {
	case "", UnsignedPayload:
		p.Form = FormUnsigned
	case streamingSigned:
		p.Form = FormSignedChunks
	case streamingSignedTrailer:
		p.Form = FormSignedChunksTrailer
	case streamingUnsignedTrailer:
		p.Form = FormUnsignedTrailer
	default:
		if strings.HasPrefix(value, "STREAMING-") {
			return errorf(CodeNotImplemented, "bodies of the form %q are not supported", value)
		}
		sum, err := hex.DecodeString(value)
		if err != nil || len(sum) != digestSizes[digestSHA256] {
			return errorf(CodeInvalidArgument,
				"x-amz-content-sha256 must be %s, the name of a streaming form, or a SHA-256 in hex", UnsignedPayload)
		}
		p.Form, p.contentSHA256 = FormHash, sum
	}
	return nil
}

func (p *Payload) parseTrailerNames(value string) error {
	if value == "" || !p.Form.trailer() {
		return nil
	}
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		d, ok := digestOfHeader(name)
		if !ok {
			return errorf(CodeInvalidRequest, "the trailer %q is not supported", name)
		}
		p.trailing[d] = true
	}
	return nil
}

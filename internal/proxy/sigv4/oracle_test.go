package sigv4

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// The signers of aws-sdk-go-v2 and of minio-go are the oracles here: they made
// what the tests send.

const (
	testID     = "AKIDEXAMPLE"
	testSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	testRegion = "eu-central-1"
)

var testTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func testKeyring() *Keyring {
	return NewKeyring(Credentials{"OTHER", "other"}, Credentials{testID, testSecret})
}

var awsCredentials = aws.Credentials{AccessKeyID: testID, SecretAccessKey: testSecret}

func s3Signer() *awsv4.Signer {
	return awsv4.NewSigner(func(o *awsv4.SignerOptions) { o.DisableURIPathEscaping = true })
}

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func crc32Base64(b []byte) string {
	h := crc32.NewIEEE()
	h.Write(b)
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// received sends r as HTTP/1.1 over a buffer and returns what a server reads.
func received(t testing.TB, r *http.Request) *http.Request {
	t.Helper()
	var wire bytes.Buffer
	if err := r.Write(&wire); err != nil {
		t.Fatalf("write request: %v", err)
	}
	return receivedRaw(t, wire.Bytes())
}

func receivedRaw(t testing.TB, wire []byte) *http.Request {
	t.Helper()
	got, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(wire)))
	if err != nil {
		t.Fatalf("read request: %v", err)
	}
	return got
}

func newRequest(t testing.TB, method, url string, body []byte) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func signHeader(t testing.TB, r *http.Request, payloadHash string) {
	t.Helper()
	r.Header.Set("X-Amz-Content-Sha256", payloadHash)
	if err := s3Signer().SignHTTP(context.Background(), awsCredentials, r, payloadHash, "s3", testRegion, testTime); err != nil {
		t.Fatal(err)
	}
}

// signBody signs r, with body, in the named form. trailer, if not empty, is
// the value of a CRC32 trailer.
func signBody(t testing.TB, form Form, body []byte, trailer string) *http.Request {
	t.Helper()
	r := newRequest(t, http.MethodPut, "http://127.0.0.1:9000/assets/some/key", body)
	trailers := http.Header{}
	if trailer != "" {
		trailers.Set("X-Amz-Checksum-Crc32", trailer)
	}
	switch form {
	case FormUnsigned:
		signHeader(t, r, UnsignedPayload)
	case FormHash:
		signHeader(t, r, hexSHA256(body))
	case FormSignedChunks, FormSignedChunksTrailer:
		if form == FormSignedChunksTrailer {
			r.Trailer = trailers
		}
		r = signer.StreamingSignV4(r, testID, testSecret, "", testRegion, int64(len(body)), testTime, sha{sha256.New()})
	case FormUnsignedTrailer:
		var framed bytes.Buffer
		for rest := body; len(rest) > 0; {
			n := min(len(rest), 1000)
			framed.WriteString(strings.ToUpper(strconv.FormatInt(int64(n), 16)) + "\r\n")
			framed.Write(rest[:n])
			framed.WriteString("\r\n")
			rest = rest[n:]
		}
		framed.WriteString("0\r\nx-amz-checksum-crc32:" + trailer + "\r\n\r\n")
		r = newRequest(t, http.MethodPut, r.URL.String(), framed.Bytes())
		r.Header.Set("X-Amz-Decoded-Content-Length", strconv.Itoa(len(body)))
		r.Header.Set("X-Amz-Trailer", "x-amz-checksum-crc32")
		r.Header.Set("Content-Encoding", "aws-chunked")
		signHeader(t, r, streamingUnsignedTrailer)
	}
	return received(t, r)
}

func verify(r *http.Request, keys *Keyring, now time.Time) (*Auth, error) {
	query, err := ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	return Verify(r, query, keys, now)
}

// verifyAndRead does all that a front does with a PUT.
func verifyAndRead(r *http.Request) ([]byte, error) {
	auth, err := verify(r, testKeyring(), testTime)
	if err != nil {
		return nil, err
	}
	payload, err := ParsePayload(r, auth.ContentSHA256)
	if err != nil {
		return nil, err
	}
	body := NewBody(r.Body, payload, auth)
	defer body.Close()
	return io.ReadAll(struct{ io.Reader }{body})
}

func codeOf(err error) Code {
	if own, ok := err.(*Error); ok {
		return own.Code
	}
	return ""
}

// sha is a hash as minio-go's signer wants it.
type sha struct{ hash.Hash }

func (sha) Close() {}

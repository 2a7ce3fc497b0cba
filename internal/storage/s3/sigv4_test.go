package s3

import (
	"bytes"
	"crypto/sha256"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	oracle "github.com/minio/minio-go/v7/pkg/signer"
)

// Another implementation is the oracle. It signs with the present time, so both
// are asked until they agree on the second.
func TestSignaturesAgreeWithAnotherImplementation(t *testing.T) {
	s := &Storage{target: target{scheme: "http", host: "s3.example.com:9000", before: "/bucket", prefix: "p/"}, signer: signer{region: "eu-test-1"}}
	requests := map[string]*request{
		"plain":     {method: http.MethodGet, key: "key"},
		"odd key":   {method: http.MethodHead, key: " a//b/../ü+%2F~*'\"?&=\n", header: http.Header{"Range": {"bytes=0-1"}}},
		"query":     {method: http.MethodGet, query: query{{"delimiter", "/"}, {"list-type", "2"}, {"prefix", "a b+c/ü&="}}},
		"flag":      {method: http.MethodPost, key: "k", query: query{{"uploads", ""}}},
		"headers":   {method: http.MethodPut, key: "k", payload: unsignedPayload, header: http.Header{"Content-Type": {"text/plain; a=b"}, "Content-Md5": {"1B2M2Y8AsgTpgAmY7PhCfg=="}, "X-Amz-Meta-A": {"  two  blanks "}}},
		"a session": {method: http.MethodDelete, key: "k"},
	}
	for name, r := range requests {
		t.Run(name, func(t *testing.T) {
			k := keys{id: "id", secret: "secret"}
			if name == "a session" {
				k.token = "token"
			}
			if r.payload == "" {
				r.payload = emptyPayload
			}
			for range 100 {
				ours := s.build(t.Context(), r)
				theirs := ours.Clone(t.Context())
				s.signer.sign(ours, k, r.payload, time.Now())
				// It signs every header, so those that we leave out are taken away.
				for _, header := range []string{"Range", "User-Agent", "X-Storagemux-Hops"} {
					theirs.Header.Del(header)
				}
				theirs.Header.Set("X-Amz-Content-Sha256", r.payload)
				theirs = oracle.SignV4(*theirs, k.id, k.secret, k.token, "eu-test-1")
				if ours.Header.Get("X-Amz-Date") != theirs.Header.Get("X-Amz-Date") {
					continue
				}
				if got, want := ours.Header.Get("Authorization"), theirs.Header.Get("Authorization"); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				return
			}
			t.Error("the two never signed in the same second")
		})
	}
}

// hasher is a hash.Hash in the form that minio-go wants.
type hasher struct{ hash.Hash }

func (hasher) Close() {}

func TestSignedChunksAgreeWithAnotherImplementation(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for _, size := range []int64{1, 100, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 7} {
		data, _ := io.ReadAll(io.LimitReader(rand.NewChaCha8([32]byte{1}), size))
		request := func() *http.Request {
			r, err := http.NewRequest(http.MethodPut, "http://s3.example.com/bucket/key", bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		theirs := oracle.StreamingSignV4(request(), "id", "secret", "", "eu-test-1", size, now, hasher{sha256.New()})
		want, err := io.ReadAll(theirs.Body)
		if err != nil {
			t.Fatal(err)
		}
		// The seed is theirs: they sign more headers.
		_, seed, _ := strings.Cut(theirs.Header.Get("Authorization"), "Signature=")
		s := signer{region: "eu-test-1"}
		sig := s.sign(request(), keys{id: "id", secret: "secret"}, signedChunks, now)
		sig.value = seed
		c := newChunked(bytes.NewReader(data), sig)
		got, err := io.ReadAll(c)
		c.release()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: %v, the encodings differ", size, err)
		}
		if int64(len(got)) != chunkedLength(size, true) {
			t.Errorf("%d bytes are %d when encoded, and %d were announced", size, len(got), chunkedLength(size, true))
		}
	}
}

func TestUnsignedChunksEndInAChecksum(t *testing.T) {
	c := newChunked(strings.NewReader("123456789"), signature{})
	defer c.release()
	got, err := io.ReadAll(c)
	want := "9\r\n123456789\r\n0\r\nx-amz-checksum-crc32:y/Q5Jg==\r\n\r\n"
	if err != nil || string(got) != want || int64(len(got)) != chunkedLength(9, false) {
		t.Errorf("got %q of %d announced bytes, %v; want %q", got, chunkedLength(9, false), err, want)
	}
}

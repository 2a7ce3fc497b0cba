package sigv4

import (
	"bytes"
	"io"
	"net/http"
	"testing"
)

func FuzzAuthorizationHeader(f *testing.F) {
	r := signBody(f, FormHash, nil, "")
	f.Add(r.Header.Get("Authorization"), r.Header.Get("X-Amz-Date"), "/assets/key")
	f.Add("AWS4-HMAC-SHA256 Credential=a/b/20261130/x/s3/aws4_request,SignedHeaders=host;;,Signature=", "20261130T120000Z", "/")
	f.Fuzz(func(t *testing.T, authorization, date, path string) {
		r, err := http.NewRequest(http.MethodGet, "http://127.0.0.1/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.Path = path
		r.Header.Set("Authorization", authorization)
		r.Header.Set("X-Amz-Date", date)
		r.Header.Set("X-Amz-Content-Sha256", UnsignedPayload)
		if _, err := verify(r, testKeyring(), testTime); err != nil && codeOf(err) == "" {
			t.Errorf("an error without a code: %v", err)
		}
	})
}

func FuzzPresignedQuery(f *testing.F) {
	f.Add(presign(f, newRequest(f, http.MethodGet, "http://127.0.0.1/assets/key", nil), "60").URL.RawQuery)
	f.Add("X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=-1")
	f.Fuzz(func(t *testing.T, query string) {
		r, err := http.NewRequest(http.MethodGet, "http://127.0.0.1/assets/key", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.RawQuery = query
		if _, err := verify(r, testKeyring(), testTime); err != nil && codeOf(err) == "" {
			t.Errorf("an error without a code: %v", err)
		}
	})
}

// FuzzChunks feeds any framing, and holds what comes out to be either whole or
// an error with a code, however it is read.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("4\r\ndata\r\n0\r\nx-amz-checksum-crc32:rfP1tw==\r\n\r\n"), int64(4))
	f.Add([]byte("2\r\nda\r\n2;x=y\r\nta\r\n0\r\n\r\n"), int64(4))
	f.Add([]byte("0\r\n\r\n"), int64(0))
	f.Add([]byte("fffffffffffffff\r\n"), int64(1))
	f.Fuzz(func(t *testing.T, wire []byte, size int64) {
		if size < 0 || size > 1<<20 {
			return
		}
		payload := &Payload{Form: FormUnsignedTrailer, Size: size}
		payload.trailing[digestCRC32] = true
		one := NewBody(bytes.NewReader(wire), payload, nil)
		got, err := io.ReadAll(one)
		if err == nil && int64(len(got)) != size || err == nil != one.Verified() {
			t.Errorf("%d of %d bytes, verified %v, %v", len(got), size, one.Verified(), err)
		}
		if err != nil && codeOf(err) == "" {
			t.Errorf("an error without a code: %v", err)
		}
		full := make([]byte, size)
		if again := NewBody(bytes.NewReader(wire), payload, nil).ReadFull(full); (again == nil) != (err == nil) {
			t.Errorf("ReadFull: %v, Read: %v", again, err)
		} else if again == nil && !bytes.Equal(full, got) {
			t.Error("ReadFull and Read give different contents")
		}
	})
}

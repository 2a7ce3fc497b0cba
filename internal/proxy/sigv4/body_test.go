package sigv4

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

var forms = map[string]Form{
	"unsigned": FormUnsigned, "hash": FormHash, "signed chunks": FormSignedChunks,
	"signed chunks with trailer": FormSignedChunksTrailer, "unsigned with trailer": FormUnsignedTrailer,
}

func content(n int) []byte {
	b := make([]byte, n)
	random := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

func trailerOf(f Form, body []byte) string {
	if f.trailer() {
		return crc32Base64(body)
	}
	return ""
}

func TestBodyGivesOutTheContentOfEveryForm(t *testing.T) {
	for name, form := range forms {
		for _, size := range []int{0, 1, 1000, WithheldBytes - 1, WithheldBytes, WithheldBytes + 1, 3*WithheldBytes + 7} {
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				want := content(size)
				got, err := verifyAndRead(signBody(t, form, want, trailerOf(form, want)))
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, want) {
					t.Error("the content differs")
				}
			})
		}
	}
}

func TestBodyReadsTheSameByEveryMethod(t *testing.T) {
	want := content(2*WithheldBytes + 5)
	for name, form := range forms {
		open := func(wrap func(io.Reader) io.Reader) *Body {
			r := signBody(t, form, want, trailerOf(form, want))
			auth, err := verify(r, testKeyring(), testTime)
			if err != nil {
				t.Fatal(err)
			}
			p, err := ParsePayload(r, auth.ContentSHA256)
			if err != nil {
				t.Fatal(err)
			}
			sent, err := io.ReadAll(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			return NewBody(wrap(bytes.NewReader(sent)), p, auth)
		}
		whole := func(r io.Reader) io.Reader { return r }

		var written bytes.Buffer
		if n, err := open(whole).WriteTo(&written); err != nil || n != int64(len(want)) || !bytes.Equal(written.Bytes(), want) {
			t.Errorf("%s: WriteTo: %d bytes, %v", name, n, err)
		}
		full := make([]byte, len(want))
		b := open(whole)
		if err := b.ReadFull(full); err != nil || !bytes.Equal(full, want) || !b.Verified() {
			t.Errorf("%s: ReadFull: %v", name, err)
		}
		if n, err := b.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("%s: Read after ReadFull: %d, %v", name, n, err)
		}
		for wrapper, wrap := range map[string]func(io.Reader) io.Reader{
			"half": iotest.HalfReader, "one byte": iotest.OneByteReader, "data with error": iotest.DataErrReader,
		} {
			got, err := io.ReadAll(open(wrap))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s over %s reader: %v", name, wrapper, err)
			}
		}
	}
}

// tamper changes one thing of what is on the wire after the request's head.
func tamper(t *testing.T, r *http.Request, change func([]byte) []byte) *http.Request {
	t.Helper()
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	sent = change(sent)
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(sent), iotest.ErrReader(io.EOF)))
	return r
}

func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte { b[at] ^= 1; return b }
}

func TestBodyWithholdsTheTailOfWhatDoesNotVerify(t *testing.T) {
	const size = 2*WithheldBytes + 100
	want := content(size)
	for name, test := range map[string]struct {
		request func() *http.Request
		change  func([]byte) []byte
		want    Code
	}{
		"hash, first byte":           {func() *http.Request { return signBody(t, FormHash, want, "") }, flip(0), CodeContentSHA256Mismatch},
		"hash, last byte":            {func() *http.Request { return signBody(t, FormHash, want, "") }, flip(size - 1), CodeContentSHA256Mismatch},
		"hash, one byte short":       {func() *http.Request { return signBody(t, FormHash, want, "") }, func(b []byte) []byte { return b[:size-1] }, CodeIncompleteBody},
		"unsigned, one byte short":   {func() *http.Request { return signBody(t, FormUnsigned, want, "") }, func(b []byte) []byte { return b[:size-1] }, CodeIncompleteBody},
		"chunks, first data byte":    {func() *http.Request { return signBody(t, FormSignedChunks, want, "") }, flip(100), CodeSignatureDoesNotMatch},
		"chunks, last chunk missing": {func() *http.Request { return signBody(t, FormSignedChunks, want, "") }, cutBefore("\r\n0;chunk"), CodeIncompleteBody},
		"chunks, signature missing":  {func() *http.Request { return signBody(t, FormSignedChunks, want, "") }, replace(";chunk-signature=", ";something=else;"), CodeSignatureDoesNotMatch},
		"chunks, last signature":     {func() *http.Request { return signBody(t, FormSignedChunks, want, "") }, replace("\r\n0;chunk-signature=", "\r\n0;chunk-signature=0"), CodeSignatureDoesNotMatch},
		"chunks, size not hex":       {func() *http.Request { return signBody(t, FormSignedChunks, want, "") }, replace("10000;", "1000g;"), CodeIncompleteBody},
		"chunks, shorter size":       {func() *http.Request { return signBody(t, FormSignedChunks, want, "") }, replace("10000;", "ffff;"), CodeIncompleteBody},
		"chunks, something after":    {func() *http.Request { return signBody(t, FormSignedChunks, want, "") }, appended("more"), CodeMalformedTrailer},
		"trailer, wrong value":       {func() *http.Request { return signBody(t, FormSignedChunksTrailer, want, crc32Base64(nil)) }, appended(""), CodeBadDigest},
		"trailer, changed":           {func() *http.Request { return signBody(t, FormSignedChunksTrailer, want, crc32Base64(want)) }, replace("x-amz-checksum-crc32:", "x-amz-checksum-crc32c:"), CodeSignatureDoesNotMatch},
		"trailer, no signature":      {func() *http.Request { return signBody(t, FormSignedChunksTrailer, want, crc32Base64(want)) }, cutBefore("x-amz-trailer-signature"), CodeSignatureDoesNotMatch},
		"unsigned trailer, data":     {func() *http.Request { return signBody(t, FormUnsignedTrailer, want, crc32Base64(want)) }, flip(100), CodeBadDigest},
		"unsigned trailer, missing":  {func() *http.Request { return signBody(t, FormUnsignedTrailer, want, crc32Base64(want)) }, cutBefore("x-amz-checksum"), CodeMalformedTrailer},
		"unsigned trailer, cut":      {func() *http.Request { return signBody(t, FormUnsignedTrailer, want, crc32Base64(want)) }, cutBefore("0\r\nx-amz"), CodeIncompleteBody},
		"unsigned trailer, unknown":  {func() *http.Request { return signBody(t, FormUnsignedTrailer, want, crc32Base64(want)) }, replace("crc32:", "sha1:"), CodeMalformedTrailer},
		"unsigned trailer, twice":    {func() *http.Request { return signBody(t, FormUnsignedTrailer, want, crc32Base64(want)) }, appended("x-amz-checksum-crc32:AAAAAA==\r\n"), CodeMalformedTrailer},
		"unsigned trailer, long":     {func() *http.Request { return signBody(t, FormUnsignedTrailer, want, crc32Base64(want)) }, appended(strings.Repeat("a", maxTrailerBytes+1)), CodeMalformedTrailer},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := verifyAndRead(tamper(t, test.request(), test.change))
			if codeOf(err) != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if len(got) > size-WithheldBytes {
				t.Errorf("%d bytes were given out, so the withheld piece was not withheld", len(got))
			}
		})
	}
}

func cutBefore(text string) func([]byte) []byte {
	return func(b []byte) []byte { return b[:bytes.LastIndex(b, []byte(text))] }
}

func replace(old, new string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(new), 1) }
}

func appended(text string) func([]byte) []byte {
	return func(b []byte) []byte { return append(b, text...) }
}

func TestBodyIsLongerThanAnnounced(t *testing.T) {
	r := signBody(t, FormUnsignedTrailer, content(100), crc32Base64(content(100)))
	r.Header.Set("X-Amz-Decoded-Content-Length", "99")
	p, err := ParsePayload(r, streamingUnsignedTrailer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(NewBody(r.Body, p, nil)); codeOf(err) != CodeIncompleteBody {
		t.Errorf("got %v", err)
	}
}

func TestEveryChecksumHeaderIsVerified(t *testing.T) {
	body := []byte("hello, world")
	for d := range digestCount {
		header := checksumHeaders[d]
		if d == digestMD5 {
			header = "Content-Md5"
		}
		read := func(value string) (*Body, error) {
			r := newRequest(t, http.MethodPut, "http://127.0.0.1/assets/key", body)
			r.Header.Set(header, value)
			p, err := ParsePayload(r, UnsignedPayload)
			if err != nil {
				return nil, err
			}
			b := NewBody(r.Body, p, nil)
			_, err = io.ReadAll(b)
			return b, err
		}
		if _, err := read("not base64"); codeOf(err) != CodeInvalidDigest && codeOf(err) != CodeInvalidRequest {
			t.Errorf("%s: a value that is none: %v", header, err)
		}
		if _, err := read(base64.StdEncoding.EncodeToString(make([]byte, digestSizes[d]))); codeOf(err) != CodeBadDigest {
			t.Errorf("%s: a wrong value: %v", header, err)
		}
		h := newDigest(d)
		h.Write(body)
		if b, err := read(base64.StdEncoding.EncodeToString(h.Sum(nil))); err != nil || !b.Verified() {
			t.Errorf("%s: the right value: %v", header, err)
		}
	}
}

func TestCRCsMatchTheirCheckValues(t *testing.T) {
	for d, want := range map[digest]string{digestCRC32: "cbf43926", digestCRC32C: "e3069283", digestCRC64NVME: "ae8b14860a799888"} {
		h := newDigest(d)
		h.Write([]byte("123456789"))
		if got := fmt.Sprintf("%x", h.Sum(nil)); got != want {
			t.Errorf("%s: got %s, want %s", digestNames[d], got, want)
		}
	}
}

func TestParsePayloadRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		sha, header, value string
		want               Code
	}{
		"chunks without length":   {streamingSigned, "", "", CodeMissingContentLength},
		"chunks, negative length": {streamingSigned, "X-Amz-Decoded-Content-Length", "-1", CodeInvalidArgument},
		"other streaming form":    {"STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "", "", CodeNotImplemented},
		"hash that is none":       {"abc", "", "", CodeInvalidArgument},
		"unknown trailer":         {streamingUnsignedTrailer, "X-Amz-Trailer", "x-amz-checksum-md4", CodeInvalidRequest},
	} {
		r := newRequest(t, http.MethodPut, "http://127.0.0.1/a/b", []byte("x"))
		if test.header != "" {
			r.Header.Set(test.header, test.value)
		}
		if test.header == "X-Amz-Trailer" {
			r.Header.Set("X-Amz-Decoded-Content-Length", "1")
		}
		if _, err := ParsePayload(r, test.sha); codeOf(err) != test.want {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
}

func TestBodySaysWhatBrokeTheConnection(t *testing.T) {
	broken := errors.New("reset")
	p := &Payload{Size: 10}
	b := NewBody(io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), p, nil)
	if _, err := io.ReadAll(b); !errors.Is(err, broken) || codeOf(err) != CodeIncompleteBody {
		t.Errorf("got %v", err)
	}
	if b.Err() == nil || b.Verified() {
		t.Error("the body is said to be whole")
	}
}

func TestClosedBodyGivesNothing(t *testing.T) {
	b := NewBody(strings.NewReader("abc"), &Payload{Size: 3}, nil)
	if !b.Close() {
		t.Error("an idle body was in use")
	}
	if n, err := b.Read(make([]byte, 3)); n != 0 || err == nil {
		t.Errorf("got %d, %v", n, err)
	}
}

func TestCloseBesideAReadDoesNotWait(t *testing.T) {
	reading, gate := make(chan struct{}), make(chan struct{})
	b := NewBody(readerFunc(func(p []byte) (int, error) {
		close(reading)
		<-gate
		return 0, io.EOF
	}), &Payload{Size: 3}, nil)
	done := make(chan struct{})
	go func() { defer close(done); _, _ = b.Read(make([]byte, 3)) }()
	<-reading
	if b.Close() {
		t.Error("a body in the middle of a Read was idle")
	}
	close(gate)
	<-done
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

package s3

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

type shaHash struct{ hash.Hash }

func (shaHash) Close() {}

func crcOf(data []byte) string {
	h := crc32.NewIEEE()
	h.Write(data)
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// bodyForms sign a PUT of data in each form that clients use.
var bodyForms = map[string]func(f *front, key string, data []byte) *http.Request{
	"hash": func(f *front, key string, data []byte) *http.Request {
		return f.sign(f.request(http.MethodPut, path(key), data), data)
	},
	"unsigned with MD5": func(f *front, key string, data []byte) *http.Request {
		sum := md5.Sum(data)
		return f.sign(f.request(http.MethodPut, path(key), data, "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD",
			"Content-Md5", base64.StdEncoding.EncodeToString(sum[:])), data)
	},
	"unsigned with checksum": func(f *front, key string, data []byte) *http.Request {
		return f.sign(f.request(http.MethodPut, path(key), data, "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD",
			"X-Amz-Checksum-Crc32", crcOf(data)), data)
	},
	"signed chunks": func(f *front, key string, data []byte) *http.Request {
		return signer.StreamingSignV4(f.request(http.MethodPut, path(key), data), testID, testSecret, "", "us-east-1",
			int64(len(data)), time.Now().UTC(), shaHash{sha256.New()})
	},
	"signed chunks with trailer": func(f *front, key string, data []byte) *http.Request {
		r := f.request(http.MethodPut, path(key), data)
		r.Trailer = http.Header{"X-Amz-Checksum-Crc32": {crcOf(data)}}
		return signer.StreamingSignV4(r, testID, testSecret, "", "us-east-1", int64(len(data)), time.Now().UTC(), shaHash{sha256.New()})
	},
	"unsigned with trailer": func(f *front, key string, data []byte) *http.Request {
		var framed bytes.Buffer
		fmt.Fprintf(&framed, "%x\r\n%s\r\n0\r\nx-amz-checksum-crc32:%s\r\n\r\n", len(data), data, crcOf(data))
		r := f.request(http.MethodPut, path(key), framed.Bytes(), "X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
			"X-Amz-Decoded-Content-Length", strconv.Itoa(len(data)), "X-Amz-Trailer", "x-amz-checksum-crc32", "Content-Encoding", "aws-chunked")
		r.ContentLength = -1 // as current SDKs send it
		return f.sign(r, nil)
	},
}

func TestEveryFormOfBodyIsStored(t *testing.T) {
	f := newFront(t, nil)
	for name, sign := range bodyForms {
		for _, size := range []int{1, smallBytes, 3 * smallBytes} {
			data := content(size)
			a := f.send(sign(f, "k", data))
			if a.StatusCode != http.StatusOK {
				t.Fatalf("%s: %d %s", name, a.StatusCode, a.body)
			}
			if !bytes.Equal(f.stored("k"), data) {
				t.Errorf("%s: the content of %d bytes differs", name, size)
			}
			if info, _ := f.store.Stat(t.Context(), "k", storage.StatOptions{}); info.Headers.ContentEncoding != "" {
				t.Errorf("%s: stored Content-Encoding %q", name, info.Headers.ContentEncoding)
			}
			if strings.Contains(name, "checksum") || strings.Contains(name, "trailer") {
				if got := a.Header.Get("x-amz-checksum-crc32"); got != crcOf(data) {
					t.Errorf("%s: the answer names the checksum %q", name, got)
				}
			}
		}
	}
}

// changedBody sends what the request would, with one thing changed.
type changedBody struct {
	io.Reader
	io.Closer
}

func TestTamperedBodiesLeaveTheOldObject(t *testing.T) {
	f := newFront(t, nil)
	old := []byte("old")
	for name, sign := range bodyForms {
		for _, size := range []int{1000, 3 * smallBytes} {
			for place, at := range map[string]int{"first": 200, "last": size} {
				f.put("k", old, storage.SetOptions{})
				r := sign(f, "k", content(size))
				sent, err := io.ReadAll(r.Body)
				if err != nil {
					t.Fatal(err)
				}
				if place == "last" {
					at = bytes.LastIndex(sent, content(size)[size-8:]) + 7
				}
				sent[at] ^= 1
				r.Body = changedBody{bytes.NewReader(sent), io.NopCloser(nil)}
				a := f.send(r)
				want := map[string]string{
					"hash": "XAmzContentSHA256Mismatch", "unsigned with MD5": "BadDigest", "unsigned with checksum": "BadDigest",
					"signed chunks": "SignatureDoesNotMatch", "signed chunks with trailer": "SignatureDoesNotMatch", "unsigned with trailer": "BadDigest",
				}[name]
				if a.code() != want {
					t.Errorf("%s, %d bytes, %s piece changed: %d %s, want %s", name, size, place, a.StatusCode, a.code(), want)
				}
				if got := f.stored("k"); !bytes.Equal(got, old) {
					t.Errorf("%s, %d bytes, %s piece changed: %d bytes are stored", name, size, place, len(got))
				}
			}
		}
	}
}

func TestCutBodiesLeaveTheOldObject(t *testing.T) {
	f := newFront(t, nil)
	old := []byte("old")
	for name, sign := range bodyForms {
		for _, size := range []int{1000, 3 * smallBytes} {
			f.put("k", old, storage.SetOptions{})
			r := sign(f, "k", content(size))
			var wire bytes.Buffer
			if err := r.Write(&wire); err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("tcp", f.server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write(wire.Bytes()[:wire.Len()-1]); err != nil {
				t.Fatal(err)
			}
			if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if response, err := http.ReadResponse(bufio.NewReader(conn), r); err == nil && response.StatusCode < 400 {
				t.Errorf("%s, cut by one byte: %d", name, response.StatusCode)
			}
			_ = conn.Close()
			if got := f.stored("k"); !bytes.Equal(got, old) {
				t.Errorf("%s, cut by one byte: %d bytes are stored", name, len(got))
			}
		}
	}
}

func TestChecksumsAreVerifiedWithoutAuth(t *testing.T) {
	f := newFront(t, nil, func(c *Config) { c.Auth = AuthNone })
	for _, headers := range [][]string{
		{"Content-Md5", "AAAAAAAAAAAAAAAAAAAAAA=="},
		{"X-Amz-Checksum-Crc32", "AAAAAA=="},
		{"X-Amz-Content-Sha256", strings.Repeat("0", 64)},
	} {
		if a := f.send(f.request(http.MethodPut, path("k"), []byte("data"), headers...)); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%v: %d", headers, a.StatusCode)
		}
	}
	if f.stored("k") != nil {
		t.Error("something was stored")
	}
	for name, sign := range bodyForms {
		r := sign(f, "k", content(1000))
		r.Header.Set("Authorization", "nonsense")
		if a := f.send(r); a.StatusCode != http.StatusOK || !bytes.Equal(f.stored("k"), content(1000)) {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
}

func TestSmallBodiesReachTheStorageVerifiedAndReplayable(t *testing.T) {
	var got storage.Body
	var sums storage.Checksums
	f := newFront(t, override{Storage: memory.New(0), set: func(_ context.Context, _ string, body storage.Body, options storage.SetOptions) (storage.Info, error) {
		got, sums = body, options.Checksums
		for range 2 {
			r, err := body.Open()
			if err != nil {
				return storage.Info{}, err
			}
			data, err := io.ReadAll(r)
			if err != nil || string(data) != "data" {
				t.Errorf("read %q, %v", data, err)
			}
			_ = r.Close()
		}
		return storage.Info{ETag: "x"}, nil
	}})
	f.want(http.StatusOK, http.MethodPut, path("k"), []byte("data"))
	if !got.Replayable() || got.Size() != 4 || sums.SHA256 == nil {
		t.Errorf("replayable %v, size %d, SHA-256 %x", got.Replayable(), got.Size(), sums.SHA256)
	}
	if _, err := got.Open(); err == nil {
		t.Error("the body could be opened after the request, when its buffer belongs to another")
	}
}

func TestSuccessOfAStorageThatReadTooLittleIsNone(t *testing.T) {
	f := newFront(t, override{Storage: memory.New(0), set: func(context.Context, string, storage.Body, storage.SetOptions) (storage.Info, error) {
		return storage.Info{ETag: "x"}, nil
	}})
	f.refused(500, "InternalError", http.MethodPut, path("k"), content(2*smallBytes))
}

func TestLengthMustBeKnown(t *testing.T) {
	f := newFront(t, nil)
	r := f.request(http.MethodPut, path("k"), []byte("data"), "X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")
	r.ContentLength = -1
	if a := f.send(f.sign(r, nil)); a.StatusCode != http.StatusLengthRequired || a.code() != "MissingContentLength" {
		t.Errorf("got %d %s", a.StatusCode, a.body)
	}
}

func TestRefusedRequestIsNotReadAtAll(t *testing.T) {
	f := newFront(t, nil)
	conn, err := net.Dial("tcp", f.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "PUT /assets/k HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("got %d, so the body was asked for", response.StatusCode)
	}
}

func TestBodyErrorWinsOverWhatTheStorageMadeOfIt(t *testing.T) {
	store := memory.New(0)
	f := newFront(t, override{Storage: store, set: func(ctx context.Context, key string, body storage.Body, options storage.SetOptions) (storage.Info, error) {
		_, err := store.SetStream(ctx, key, body, options)
		return storage.Info{}, storage.Errorf(storage.CodeAllBackendsDown, "SetStream", "all down").WithCause(errors.Unwrap(err))
	}})
	r := bodyForms["unsigned with checksum"](f, "k", content(2*smallBytes))
	r.Body = io.NopCloser(bytes.NewReader(make([]byte, 2*smallBytes)))
	if a := f.send(r); a.code() != "BadDigest" {
		t.Errorf("got %d %s", a.StatusCode, a.body)
	}
}

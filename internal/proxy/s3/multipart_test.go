package s3

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// mirrored is a mux that writes to two stores in memory.
func mirrored(t *testing.T) storage.Storage {
	t.Helper()
	mux, err := muxengine.New(muxengine.Config{Mode: muxengine.ModeMirror, Members: []muxengine.Member{
		{Name: "a", Storage: memory.New(0)}, {Name: "b", Storage: memory.New(0)},
	}}, muxengine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mux.Close)
	return mux
}

func (f *front) createUpload(key string, headers ...string) string {
	f.t.Helper()
	a := f.want(200, http.MethodPost, path(key)+"?uploads", nil, headers...)
	var created struct{ Bucket, Key, UploadId string }
	if err := xml.Unmarshal(a.body, &created); err != nil || created.Key != key || created.Bucket != testBucket {
		f.t.Fatalf("%s: %v", a.body, err)
	}
	return created.UploadId
}

func completeXML(etags ...string) []byte {
	var b bytes.Buffer
	b.WriteString("<CompleteMultipartUpload>")
	for i, etag := range etags {
		fmt.Fprintf(&b, "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i+1, strings.ReplaceAll(etag, `"`, "&quot;"))
	}
	b.WriteString("</CompleteMultipartUpload>")
	return b.Bytes()
}

func TestUploadInPartsBecomesOneObject(t *testing.T) {
	for name, sealer := range map[string]Sealer{"clear": nil, "sealed": reversing{}} {
		store := memory.New(0)
		f := newFront(t, store, func(c *Config) { c.Sealer = sealer })
		key := "dir/ü k"
		f.put("source", content(1000), storage.SetOptions{})
		id := f.createUpload(key, "Content-Type", "a/b", "X-Amz-Meta-Color", "blue")
		at := func(number int) string { return fmt.Sprintf("%s?partNumber=%d&uploadId=%s", path(key), number, id) }
		first := f.want(200, http.MethodPut, at(1), content(2*smallBytes)).Header.Get("ETag")
		second := f.want(200, http.MethodPut, at(2), []byte("second")).Header.Get("ETag")
		copied := f.want(200, http.MethodPut, at(3), nil, "X-Amz-Copy-Source", "assets/source", "X-Amz-Copy-Source-Range", "bytes=10-19")
		var third struct{ ETag string }
		if err := xml.Unmarshal(copied.body, &third); err != nil {
			t.Fatal(err)
		}
		if list := f.want(200, http.MethodGet, path(key)+"?uploadId="+id+"&max-parts=2", nil); strings.Count(string(list.body), "<Part>") != 2 ||
			!strings.Contains(string(list.body), "<NextPartNumberMarker>2<") || !strings.Contains(string(list.body), "<IsTruncated>true<") {
			t.Errorf("ListParts: %s", list.body)
		}
		var uploads struct {
			Upload []struct{ Key, UploadId string }
		}
		if err := xml.Unmarshal(f.want(200, http.MethodGet, "/assets?uploads", nil).body, &uploads); err != nil || len(uploads.Upload) != 1 || uploads.Upload[0].UploadId != id {
			t.Errorf("ListMultipartUploads: %+v, %v", uploads, err)
		}
		if f.stored(key) != nil {
			t.Error("the object is visible before it is complete")
		}
		f.refused(400, "InvalidPart", http.MethodPost, path(key)+"?uploadId="+id, completeXML(first, first, third.ETag))
		f.want(200, http.MethodPost, path(key)+"?uploadId="+id, completeXML(first, second, third.ETag))
		want := slices.Concat(content(2*smallBytes), []byte("second"), content(1000)[10:20])
		if !bytes.Equal(f.stored(key), want) {
			t.Errorf("%s: %d bytes are stored", name, len(f.stored(key)))
		}
		if info, _ := store.Stat(t.Context(), key, storage.StatOptions{}); info.Headers.ContentType != "a/b" || info.Metadata["color"] != "blue" {
			t.Errorf("got %+v", info)
		}
		f.refused(404, "NoSuchUpload", http.MethodPost, path(key)+"?uploadId="+id, completeXML(first))
	}
}

func TestUploadIDsBelongToTheirKey(t *testing.T) {
	f := newFront(t, mirrored(t), func(c *Config) { c.Sealer = purposeful{} })
	id := f.createUpload("a")
	f.refused(404, "NoSuchUpload", http.MethodPut, path("b")+"?partNumber=1&uploadId="+id, []byte("x"))
	f.refused(404, "NoSuchUpload", http.MethodPut, path("a")+"?partNumber=1&uploadId=nonsense", []byte("x"))
	f.refused(404, "NoSuchUpload", http.MethodGet, path("b")+"?uploadId="+id, nil)
	f.refused(404, "NoSuchUpload", http.MethodDelete, path("b")+"?uploadId="+id, nil)
	f.want(204, http.MethodDelete, path("a")+"?uploadId="+id, nil)
	f.refused(404, "NoSuchUpload", http.MethodPut, path("a")+"?partNumber=1&uploadId="+id, []byte("x"))
}

// purposeful is a sealer that only binds to the purpose.
type purposeful struct{}

func (purposeful) Seal(purpose string, plain []byte) []byte {
	return []byte(purpose + "\x00" + string(plain))
}

func (purposeful) Open(purpose string, sealed []byte) ([]byte, error) {
	plain, ok := bytes.CutPrefix(sealed, []byte(purpose+"\x00"))
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	return plain, nil
}

func TestPartsThatDoNotVerifyAreNotKept(t *testing.T) {
	f := newFront(t, mirrored(t))
	id := f.createUpload("k")
	for _, size := range []int{100, 2 * smallBytes} {
		a := f.do(http.MethodPut, path("k")+"?partNumber=1&uploadId="+id, content(size), "Content-Md5", "AAAAAAAAAAAAAAAAAAAAAA==")
		if a.code() != "BadDigest" {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
	}
	if list := f.want(200, http.MethodGet, path("k")+"?uploadId="+id, nil); strings.Contains(string(list.body), "<Part>") {
		t.Errorf("a part was kept: %s", list.body)
	}
}

func TestBadRequestsForParts(t *testing.T) {
	f := newFront(t, mirrored(t))
	id := f.createUpload("k")
	for _, number := range []string{"0", "10001", "x", ""} {
		f.refused(400, "InvalidArgument", http.MethodPut, path("k")+"?partNumber="+number+"&uploadId="+id, []byte("x"))
	}
	for body, code := range map[string]string{
		"": "MalformedXML", "<CompleteMultipartUpload/>": "MalformedXML",
		"<CompleteMultipartUpload><Part><PartNumber>2</PartNumber></Part><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>": "InvalidPartOrder",
		"<CompleteMultipartUpload><Part><PartNumber>10001</PartNumber></Part></CompleteMultipartUpload>":                                    "InvalidArgument",
	} {
		f.refused(400, code, http.MethodPost, path("k")+"?uploadId="+id, []byte(body))
	}
	none := newFront(t, struct{ storage.Storage }{memory.New(0)}) // which hides that memory takes parts
	a := none.refused(501, "NotImplemented", http.MethodPost, path("k")+"?uploads", nil)
	if a.Header.Get("x-storagemux-error-code") != "STORAGE.UNSUPPORTED" {
		t.Errorf("got %v", a.Header)
	}
}

func TestMinioClientUploadsInParts(t *testing.T) {
	f := newFront(t, mirrored(t))
	data := content(11 << 20)
	options := minio.PutObjectOptions{PartSize: 5 << 20, NumThreads: 2, ContentType: "a/b", Checksum: minio.ChecksumCRC64NVME}
	if _, err := f.minio(true).PutObject(t.Context(), testBucket, "k", bytes.NewReader(data), int64(len(data)), options); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(f.stored("k"), data) {
		t.Error("the content differs")
	}
}

// flushRecorder is a ResponseWriter that counts flushes.
type flushRecorder struct {
	rawRecorder
	body    bytes.Buffer
	flushes int
}

func (r *flushRecorder) Write(p []byte) (int, error) { return r.body.Write(p) }
func (r *flushRecorder) FlushError() error           { r.flushes++; return nil }

func TestSlowAnswersAreKeptAlive(t *testing.T) {
	for name, failure := range map[string]error{"success": nil, "failure": storage.Errorf(storage.CodeAllBackendsDown, "", "down")} {
		synctest.Test(t, func(t *testing.T) {
			h := New(Options{})
			w := &flushRecorder{rawRecorder: *newRawRecorder()}
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			q := &request{h: h, cfg: testConfig(nil), w: w, r: r, client: client{http.NewResponseController(w), DefaultClientIdle}, start: time.Now()}
			err := q.answerSlowly(func() (document, error) {
				time.Sleep(35 * time.Second)
				return copyResult("CopyObjectResult", "x", time.Now()), failure
			})
			if err != nil || w.status != 200 || w.flushes != 3 {
				t.Errorf("%s: %v, status %d, %d flushes", name, err, w.status, w.flushes)
			}
			var root struct{ XMLName xml.Name }
			if err := xml.Unmarshal(w.body.Bytes(), &root); err != nil {
				t.Errorf("%s: %v: %s", name, err, w.body.String())
			}
			if want := map[bool]string{true: "CopyObjectResult", false: "Error"}[failure == nil]; root.XMLName.Local != want {
				t.Errorf("%s: got %s", name, w.body.String())
			}
			if failure != nil && q.stats.ErrorCode != "ServiceUnavailable" {
				t.Errorf("metrics got %+v", q.stats)
			}
		})
	}
}

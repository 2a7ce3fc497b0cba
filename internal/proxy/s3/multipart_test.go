package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// inParts takes uploads in parts, in memory.
type inParts struct {
	storage.Storage
	mu      sync.Mutex
	uploads map[string]*openUpload
}

type openUpload struct {
	key   string
	opts  storage.SetOptions
	parts map[int]storage.Part
	data  map[int][]byte
}

func newInParts() *inParts {
	return &inParts{Storage: memory.New(0), uploads: map[string]*openUpload{}}
}

func (s *inParts) find(key, id string) (*openUpload, error) {
	if u := s.uploads[id]; u != nil && u.key == key {
		return u, nil
	}
	return nil, storage.Errorf(storage.CodeUploadNotFound, "", "no upload %q", id)
}

func (s *inParts) CreateUpload(_ context.Context, key string, opts storage.SetOptions) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprint("upload", len(s.uploads))
	s.uploads[id] = &openUpload{key, opts, map[int]storage.Part{}, map[int][]byte{}}
	return id, nil
}

func (s *inParts) UploadPart(ctx context.Context, key, id string, number int, body storage.Body, opts storage.SetOptions) (storage.Part, error) {
	r, err := storage.OpenBody(ctx, "UploadPart", body, opts.Checksums)
	if err != nil {
		return storage.Part{}, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return storage.Part{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.find(key, id)
	if err != nil {
		return storage.Part{}, err
	}
	sum := md5.Sum(data)
	part := storage.Part{Number: number, ETag: hex.EncodeToString(sum[:]), Size: int64(len(data)), ModTime: time.Now()}
	u.parts[number], u.data[number] = part, data
	return part, nil
}

func (s *inParts) CompleteUpload(ctx context.Context, key, id string, parts []storage.Part, _ storage.SetOptions) (storage.Info, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.find(key, id)
	if err != nil {
		return storage.Info{}, err
	}
	var whole []byte
	for _, part := range parts {
		if u.parts[part.Number].ETag != part.ETag || part.ETag == "" {
			return storage.Info{}, storage.Errorf(storage.CodeInvalidPart, "CompleteUpload", "part %d", part.Number)
		}
		whole = append(whole, u.data[part.Number]...)
	}
	delete(s.uploads, id)
	return s.SetStream(ctx, key, storage.Bytes(whole), u.opts)
}

func (s *inParts) AbortUpload(_ context.Context, _, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.uploads, id)
	return nil
}

func (s *inParts) ListParts(_ context.Context, key, id string, after, limit int) (parts []storage.Part, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.find(key, id)
	if err != nil {
		return nil, false, err
	}
	for _, number := range slices.Sorted(maps.Keys(u.parts)) {
		if number > after {
			if len(parts) == limit {
				return parts, true, nil
			}
			parts = append(parts, u.parts[number])
		}
	}
	return parts, false, nil
}

func (s *inParts) ListUploads(_ context.Context, opts storage.ListUploadsOptions) (storage.UploadPage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var page storage.UploadPage
	for _, id := range slices.Sorted(maps.Keys(s.uploads)) {
		if u := s.uploads[id]; strings.HasPrefix(u.key, opts.Prefix) {
			page.Uploads = append(page.Uploads, storage.Upload{Key: u.key, ID: id, Initiated: time.Now()})
		}
	}
	return page, nil
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
		store := newInParts()
		f := newFront(t, store, func(c *Config) { c.Sealer = sealer })
		key := "dir/ü k"
		f.put("source", content(1000), storage.SetOptions{})
		id := f.createUpload(key, "Content-Type", "a/b", "X-Amz-Meta-Color", "blue")
		if name == "sealed" && strings.Contains(id, "upload0") {
			t.Errorf("the id %s is not sealed", id)
		}
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
	f := newFront(t, newInParts(), func(c *Config) { c.Sealer = purposeful{} })
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
	store := newInParts()
	f := newFront(t, store)
	id := f.createUpload("k")
	for _, size := range []int{100, 2 * smallBytes} {
		a := f.do(http.MethodPut, path("k")+"?partNumber=1&uploadId="+id, content(size), "Content-Md5", "AAAAAAAAAAAAAAAAAAAAAA==")
		if a.code() != "BadDigest" {
			t.Errorf("got %d %s", a.StatusCode, a.body)
		}
	}
	if parts, _, _ := store.ListParts(t.Context(), "k", "upload0", 0, 10); len(parts) != 0 {
		t.Errorf("%d parts were kept", len(parts))
	}
}

func TestBadRequestsForParts(t *testing.T) {
	f := newFront(t, newInParts())
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
	f := newFront(t, newInParts())
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

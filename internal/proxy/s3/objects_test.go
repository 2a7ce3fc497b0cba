package s3

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

func TestObjectComesBackAsItWasPut(t *testing.T) {
	f := newFront(t, nil)
	for _, key := range []string{"a", "a/b", "a//b", "/leading", "dir/", "sp ace+plus", "ü/é", "a?b&c=d", "q%2Fq", "..", "a/../b", strings.Repeat("k", 1024)} {
		for _, size := range []int{0, 5, smallBytes, smallBytes + 1, 3 * smallBytes} {
			data := content(size)
			put := f.want(http.StatusOK, http.MethodPut, path(key), data, "Content-Type", "text/x", "Cache-Control", "no-cache",
				"Content-Disposition", "inline", "Content-Encoding", "aws-chunked,zstd", "Content-Language", "de",
				"Expires", "Thu, 01 Dec 2030 16:00:00 GMT", "X-Amz-Meta-Color", "blue", "x-amz-meta-Two", "1", "x-amz-meta-two", "2")
			get := f.want(http.StatusOK, http.MethodGet, path(key), nil, "Accept-Encoding", "identity")
			head := f.want(http.StatusOK, http.MethodHead, path(key), nil)
			if !bytes.Equal(get.body, data) {
				t.Fatalf("%q: the content of %d bytes differs", key, size)
			}
			for _, a := range []answered{get, head} {
				for name, want := range map[string]string{
					"Content-Type": "text/x", "Cache-Control": "no-cache", "Content-Disposition": "inline", "Content-Encoding": "zstd",
					"Content-Language": "de", "Expires": "Thu, 01 Dec 2030 16:00:00 GMT", "X-Amz-Meta-Color": "blue", "X-Amz-Meta-Two": "1,2",
					"Accept-Ranges": "bytes", "Etag": put.Header.Get("Etag"),
				} {
					if got := a.Header.Get(name); got != want {
						t.Errorf("%q: %s: %s is %q, want %q", key, a.Request.Method, name, got, want)
					}
				}
				if a.ContentLength != int64(size) {
					t.Errorf("%q: %s: Content-Length is %d, want %d", key, a.Request.Method, a.ContentLength, size)
				}
				if modified, err := http.ParseTime(a.Header.Get("Last-Modified")); err != nil || time.Since(modified) > time.Minute {
					t.Errorf("%q: Last-Modified: %v %v", key, modified, err)
				}
				if a.Header.Get("X-Amz-Request-Id") == "" {
					t.Error("no request id")
				}
			}
		}
		f.want(http.StatusNoContent, http.MethodDelete, path(key), nil)
		f.refused(http.StatusNotFound, "NoSuchKey", http.MethodGet, path(key), nil)
		f.want(http.StatusNoContent, http.MethodDelete, path(key), nil)
	}
}

func TestMetadataNamesAreLowerCaseOnTheWire(t *testing.T) {
	f := newFront(t, nil)
	f.put("k", nil, storage.SetOptions{Metadata: map[string]string{"color": "blue", "storagemux-version": "v"}})
	recorder := newRawRecorder()
	f.handler.ServeHTTP(recorder, f.sign(f.request(http.MethodHead, path("k"), nil), nil))
	if recorder.header["x-amz-meta-color"] == nil {
		t.Errorf("got %v", recorder.header)
	}
	for name := range recorder.header {
		if strings.Contains(strings.ToLower(name), "storagemux-version") {
			t.Errorf("%s is shown to clients", name)
		}
	}
}

type rawRecorder struct {
	header http.Header
	status int
}

func newRawRecorder() *rawRecorder                      { return &rawRecorder{header: http.Header{}} }
func (r *rawRecorder) Header() http.Header              { return r.header }
func (r *rawRecorder) Write(p []byte) (int, error)      { return len(p), nil }
func (r *rawRecorder) WriteHeader(status int)           { r.status = status }
func (r *rawRecorder) SetWriteDeadline(time.Time) error { return nil }
func (r *rawRecorder) SetReadDeadline(time.Time) error  { return nil }

func TestContentTypeDefaultsAsInS3(t *testing.T) {
	f := newFront(t, nil)
	f.want(http.StatusOK, http.MethodPut, path("k"), []byte("<html>"))
	if got := f.want(http.StatusOK, http.MethodGet, path("k"), nil).Header.Get("Content-Type"); got != "binary/octet-stream" {
		t.Errorf("got %q", got)
	}
}

func TestResponseHeadersCanBeOverridden(t *testing.T) {
	f := newFront(t, nil)
	f.put("k", []byte("x"), storage.SetOptions{Headers: storage.Headers{ContentType: "a/b"}})
	a := f.want(http.StatusOK, http.MethodGet, path("k")+"?response-content-type=c%2Fd&response-content-disposition=attachment%3B%20filename%3D%22a%0Ab%22", nil)
	if a.Header.Get("Content-Type") != "c/d" || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("got %v", a.Header)
	}
}

func TestRangesOfAnObject(t *testing.T) {
	f := newFront(t, nil)
	data := []byte("0123456789")
	f.put("k", data, storage.SetOptions{})
	f.put("empty", nil, storage.SetOptions{})
	for value, want := range map[string]struct {
		status       int
		body         string
		contentRange string
	}{
		"bytes=0-3":                    {206, "0123", "bytes 0-3/10"},
		"bytes=3-":                     {206, "3456789", "bytes 3-9/10"},
		"bytes=-3":                     {206, "789", "bytes 7-9/10"},
		"bytes=-30":                    {206, "0123456789", "bytes 0-9/10"},
		"bytes=5-100":                  {206, "56789", "bytes 5-9/10"},
		"bytes=9-9":                    {206, "9", "bytes 9-9/10"},
		"bytes=0-99999999999999999999": {206, "0123456789", "bytes 0-9/10"},
		"bytes=10-":                    {416, "", "bytes */10"},
		"bytes=-0":                     {416, "", "bytes */10"},
		"bytes=5-3":                    {200, "0123456789", ""},
		"bytes=0-1,3-4":                {200, "0123456789", ""},
		"bytes=a-b":                    {200, "0123456789", ""},
		"bytes=-":                      {200, "0123456789", ""},
		"lines=0-1":                    {200, "0123456789", ""},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			a := f.do(method, path("k"), nil, "Range", value)
			if a.StatusCode != want.status || a.Header.Get("Content-Range") != want.contentRange {
				t.Errorf("%s %s: %d %q, want %d %q", method, value, a.StatusCode, a.Header.Get("Content-Range"), want.status, want.contentRange)
			}
			if method == http.MethodGet && want.status != 416 && string(a.body) != want.body {
				t.Errorf("%s: got %q", value, a.body)
			}
			if method == http.MethodHead && want.status != 416 && a.ContentLength != int64(len(want.body)) {
				t.Errorf("HEAD %s: Content-Length %d", value, a.ContentLength)
			}
		}
	}
	f.refused(416, "InvalidRange", http.MethodGet, path("empty"), nil, "Range", "bytes=0-")
	f.refused(404, "NoSuchKey", http.MethodGet, path("missing"), nil, "Range", "bytes=0-")
}

func TestPreconditionsOfReads(t *testing.T) {
	f := newFront(t, nil)
	info := f.put("k", []byte("data"), storage.SetOptions{})
	before, after := info.ModTime.Add(-time.Hour).UTC().Format(http.TimeFormat), info.ModTime.Add(time.Hour).UTC().Format(http.TimeFormat)
	for _, test := range []struct {
		header, value string
		want          int
	}{
		{"If-Match", quote(info.ETag), 200},
		{"If-Match", info.ETag, 200},
		{"If-Match", "*", 200},
		{"If-Match", `"a", ` + quote(info.ETag), 200},
		{"If-Match", `"other"`, 412},
		{"If-None-Match", quote(info.ETag), 304},
		{"If-None-Match", "W/" + quote(info.ETag), 304},
		{"If-None-Match", "*", 304},
		{"If-None-Match", `"other"`, 200},
		{"If-Modified-Since", before, 200},
		{"If-Modified-Since", after, 304},
		{"If-Modified-Since", "yesterday", 200},
		{"If-Unmodified-Since", before, 412},
		{"If-Unmodified-Since", after, 200},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			a := f.do(method, path("k"), nil, test.header, test.value)
			if a.StatusCode != test.want {
				t.Errorf("%s with %s: %s: %d, want %d", method, test.header, test.value, a.StatusCode, test.want)
			}
			if test.want == 304 && len(a.body) != 0 {
				t.Errorf("a 304 has a body")
			}
		}
	}
}

func TestIfRangeDecidesBetweenThePartAndTheWhole(t *testing.T) {
	for name, identity := range map[string]storage.Identity{"native": storage.IdentityNative, "stored": storage.IdentityStored} {
		capabilities := memory.New(0).Capabilities()
		capabilities.Identity = identity
		f := newFront(t, override{Storage: memory.New(0), capabilities: &capabilities})
		info := f.put("k", []byte("0123456789"), storage.SetOptions{Metadata: map[string]string{storage.VersionMetadata: "7"}})
		tag := f.want(200, http.MethodHead, path("k"), nil).Header.Get("ETag")
		for _, test := range []struct {
			value, part string
			want        string
		}{
			{tag, "bytes=2-3", "23"},
			{`"other"`, "bytes=2-3", "0123456789"},
			{`"other"`, "bytes=20-", "0123456789"},
			{info.ModTime.UTC().Format(http.TimeFormat), "bytes=2-3", "23"},
			{info.ModTime.Add(-time.Hour).UTC().Format(http.TimeFormat), "bytes=2-3", "0123456789"},
		} {
			a := f.do(http.MethodGet, path("k"), nil, "Range", test.part, "If-Range", test.value)
			if string(a.body) != test.want {
				t.Errorf("%s: If-Range %s: %d %q, want %q", name, test.value, a.StatusCode, a.body, test.want)
			}
		}
	}
}

func TestConditionalPut(t *testing.T) {
	f := newFront(t, nil)
	f.want(200, http.MethodPut, path("k"), []byte("1"), "If-None-Match", "*")
	f.refused(412, "PreconditionFailed", http.MethodPut, path("k"), []byte("2"), "If-None-Match", "*")
	f.refused(501, "NotImplemented", http.MethodPut, path("k"), []byte("2"), "If-None-Match", `"tag"`)
	f.refused(412, "PreconditionFailed", http.MethodPut, path("k"), []byte("2"), "If-Match", `"tag"`)
	f.refused(404, "NoSuchKey", http.MethodPut, path("other"), []byte("2"), "If-Match", `"tag"`)
	tag := f.want(200, http.MethodHead, path("k"), nil).Header.Get("ETag")
	f.want(200, http.MethodPut, path("k"), []byte("3"), "If-Match", tag)

	capabilities := f.store.Capabilities()
	capabilities.ConditionalWrite = false
	f.handler.SetConfig(testConfig(override{Storage: f.store, capabilities: &capabilities}))
	a := f.refused(501, "NotImplemented", http.MethodPut, path("k"), []byte("4"), "If-None-Match", "*")
	if a.Header.Get("x-storagemux-error-code") != "STORAGE.UNSUPPORTED" {
		t.Errorf("got %v", a.Header)
	}
	if got := f.stored("k"); string(got) != "3" {
		t.Errorf("stored %q", got)
	}
}

func TestDerivedETagsAreTheSameEverywhereAndNeverLookLikeAnMD5(t *testing.T) {
	capabilities := memory.New(0).Capabilities()
	capabilities.Identity = storage.IdentityStored
	f := newFront(t, override{Storage: memory.New(0), capabilities: &capabilities})
	f.put("k", []byte("data"), storage.SetOptions{Metadata: map[string]string{storage.VersionMetadata: "17-abc"}})
	get := f.want(200, http.MethodGet, path("k"), nil).Header.Get("ETag")
	head := f.want(200, http.MethodHead, path("k"), nil).Header.Get("ETag")
	if get != head || !strings.HasSuffix(get, `-1"`) || len(get) < 34 {
		t.Errorf("GET %s, HEAD %s", get, head)
	}
	f.want(304, http.MethodGet, path("k"), nil, "If-None-Match", get)
	f.want(200, http.MethodGet, path("k"), nil, "If-Match", get)
	f.want(412, http.MethodGet, path("k"), nil, "If-Match", `"other"`)
	if weak := clientETag(storage.Info{ETag: `W/"x"`, Size: 3}, storage.IdentityNative); strings.Contains(weak, "W/") || !strings.Contains(weak, "-") {
		t.Errorf("a weak tag became %s", weak)
	}
	f.refused(501, "NotImplemented", http.MethodPut, path("k"), []byte("x"), "If-Match", get)
}

func TestReservedKeysAreForbidden(t *testing.T) {
	f := newFront(t, nil)
	f.put(storage.ReservedTmp+"x", []byte("x"), storage.SetOptions{})
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodHead, http.MethodDelete} {
		a := f.do(method, path(storage.ReservedTmp+"x"), nil)
		if a.StatusCode != 403 {
			t.Errorf("%s: %d", method, a.StatusCode)
		}
	}
	f.refused(403, "AccessDenied", http.MethodPut, path("copy"), nil, "X-Amz-Copy-Source", "assets/"+storage.ReservedTmp+"x")
}

func TestWhatNoBackendWouldKeepIsRefused(t *testing.T) {
	f := newFront(t, nil)
	for header, want := range map[string]string{
		"X-Amz-Storage-Class: GLACIER":                 "InvalidStorageClass",
		"X-Amz-Acl: public-read":                       "AccessControlListNotSupported",
		"X-Amz-Grant-Read: id=x":                       "AccessControlListNotSupported",
		"X-Amz-Server-Side-Encryption: AES256":         "NotImplemented",
		"X-Amz-Object-Lock-Mode: GOVERNANCE":           "InvalidRequest",
		"X-Amz-Website-Redirect-Location: /x":          "NotImplemented",
		"X-Amz-Meta-Big: " + strings.Repeat("x", 2049): "MetadataTooLarge",
	} {
		name, value, _ := strings.Cut(header, ": ")
		a := f.do(http.MethodPut, path("k"), []byte("x"), name, value)
		if a.code() != want {
			t.Errorf("%s: %d %s, want %s", name, a.StatusCode, a.code(), want)
		}
	}
	if f.stored("k") != nil {
		t.Error("something was stored")
	}
	f.want(200, http.MethodPut, path("k"), []byte("x"), "X-Amz-Acl", "private", "X-Amz-Storage-Class", "STANDARD")
}

func TestKeysAndLengthsAreBounded(t *testing.T) {
	f := newFront(t, nil, func(c *Config) { c.Limits.MaxObjectBytes = 100 })
	f.refused(400, "KeyTooLongError", http.MethodPut, path(strings.Repeat("k", 1025)), []byte("x"))
	f.refused(400, "InvalidURI", http.MethodPut, "/assets/%ff", []byte("x"))
	f.refused(400, "InvalidURI", http.MethodGet, "/assets/a%00b", nil)
	f.refused(400, "EntityTooLarge", http.MethodPut, path("k"), content(101))
	f.want(200, http.MethodPut, path("k"), content(100))
}

func TestSubresourcesOfObjects(t *testing.T) {
	f := newFront(t, nil)
	f.put("k", []byte("x"), storage.SetOptions{})
	if a := f.want(200, http.MethodGet, path("k")+"?acl", nil); !strings.Contains(string(a.body), "FULL_CONTROL") {
		t.Errorf("acl: %s", a.body)
	}
	f.want(200, http.MethodGet, path("k")+"?tagging", nil)
	f.refused(404, "NoSuchKey", http.MethodGet, path("none")+"?acl", nil)
	f.refused(404, "NoSuchObjectLockConfiguration", http.MethodGet, path("k")+"?retention", nil)
	f.want(200, http.MethodGet, path("k")+"?versionId=null", nil)
	f.refused(404, "NoSuchVersion", http.MethodGet, path("k")+"?versionId=7", nil)
	for _, sub := range []string{"retention", "legal-hold", "restore", "renameObject", "torrent", "select"} {
		f.refused(501, "NotImplemented", http.MethodPut, path("k")+"?"+sub, []byte("y"))
	}
	if got := f.stored("k"); string(got) != "x" {
		t.Errorf("a sub-resource acted on the object: %q", got)
	}
}

func TestConditionalDeletes(t *testing.T) {
	f := newFront(t, memory.New(0))
	f.put("k", []byte("1"), storage.SetOptions{})
	f.refused(412, "PreconditionFailed", http.MethodDelete, path("k"), nil, "If-Match", `"other"`)
	f.refused(501, "NotImplemented", http.MethodDelete, path("k"), nil, "X-Amz-If-Match-Size", "1")
	f.refused(404, "NoSuchKey", http.MethodDelete, path("missing"), nil, "If-Match", `"other"`)
	body := f.want(200, http.MethodPost, "/assets?delete", []byte(`<Delete><Object><Key>k</Key><ETag>"other"</ETag></Object></Delete>`)).body
	if !strings.Contains(string(body), "<Code>PreconditionFailed</Code>") || f.stored("k") == nil {
		t.Errorf("got %s", body)
	}
	tag := f.want(200, http.MethodHead, path("k"), nil).Header.Get("ETag")
	f.want(204, http.MethodDelete, path("k"), nil, "If-Match", tag)
	if f.stored("k") != nil {
		t.Error("the object is still there")
	}
	plain := newFront(t, struct{ storage.Storage }{memory.New(0)}) // which deletes without conditions only
	plain.put("k", []byte("1"), storage.SetOptions{})
	plain.refused(501, "NotImplemented", http.MethodDelete, path("k"), nil, "If-Match", "*")
}

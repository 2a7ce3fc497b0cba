package s3

import (
	"bufio"
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

func parseTestQuery(t testing.TB, raw string) sigv4.Query {
	t.Helper()
	query, err := sigv4.ParseQuery(raw)
	if err != nil {
		t.Fatal(err)
	}
	return query
}

// FuzzRequest sends anything that net/http takes for a request to a front
// without signatures. It must answer, and with no 500.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /assets?list-type=2&prefix=a&delimiter=/&max-keys=3 HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET /assets?versions&encoding-type=url HTTP/1.1\r\nHost: assets.localhost\r\n\r\n",
		"GET /assets/k HTTP/1.1\r\nHost: h\r\nRange: bytes=1-2\r\nIf-Range: \"x\"\r\nX-Amz-Checksum-Mode: ENABLED\r\n\r\n",
		"HEAD /k HTTP/1.1\r\nHost: assets.localhost\r\nIf-None-Match: *\r\n\r\n",
		"PUT /assets/k HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nContent-MD5: jXd/OF09/siBXSD3SWAm3A==\r\n\r\ndata",
		"PUT /assets/c HTTP/1.1\r\nHost: h\r\nX-Amz-Copy-Source: /assets/k\r\nX-Amz-Metadata-Directive: REPLACE\r\n\r\n",
		"PUT /assets/k HTTP/1.1\r\nHost: h\r\nContent-Length: 44\r\nX-Amz-Content-Sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\nX-Amz-Decoded-Content-Length: 4\r\nX-Amz-Trailer: x-amz-checksum-crc32\r\n\r\n4\r\ndata\r\n0\r\nx-amz-checksum-crc32:rfP1tw==\r\n\r\n",
		"PUT /assets/k?tagging HTTP/1.1\r\nHost: h\r\nContent-Length: 77\r\n\r\n<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>  ",
		"GET /assets/k?tagging HTTP/1.1\r\nHost: h\r\nX-Amz-Tagging: a=1\r\n\r\n",
		"POST /assets?delete HTTP/1.1\r\nHost: h\r\nContent-Length: 53\r\n\r\n<Delete><Object><Key>k</Key></Object></Delete>       ",
		"DELETE /assets/k?versionId=null HTTP/1.1\r\nHost: h\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	store := memory.New(1 << 20)
	handler := New(Options{})
	config := testConfig(store)
	config.Auth = AuthNone
	handler.SetConfig(config)
	f.Fuzz(func(t *testing.T, wire []byte) {
		if _, err := storage.Set(t.Context(), store, "k", []byte("stored"), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(wire)))
		if err != nil {
			return
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
	})
}

func FuzzListToken(f *testing.F) {
	config := testConfig(nil)
	for _, last := range []place{{"a", ""}, {"dir/", "mirrors/eu"}, {"ü", "x"}} {
		f.Add(config.sealToken(last))
	}
	f.Fuzz(func(t *testing.T, token string) {
		last, err := config.openToken(token)
		if err != nil {
			return
		}
		if again, err := config.openToken(config.sealToken(last)); err != nil || again != last {
			t.Errorf("%q opened to %q, and that to %q, %v", token, last, again, err)
		}
	})
}

func FuzzDeleteXML(f *testing.F) {
	f.Add([]byte("<Delete><Quiet>true</Quiet><Object><Key>a&amp;b</Key><VersionId>null</VersionId></Object></Delete>"))
	f.Add([]byte(`<?xml version="1.0"?><Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Object><Key>a</Key></Object></Delete>`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if parsed, err := parseDelete(body); err == nil && (len(parsed.Objects) == 0 || len(parsed.Objects) > maxDeleteKeys) {
			t.Errorf("%d objects", len(parsed.Objects))
		}
	})
}

func FuzzRange(f *testing.F) {
	for _, seed := range []string{"bytes=0-1", "bytes=-5", "bytes=5-", "bytes=99999999999999999999-"} {
		f.Add(seed, int64(10))
	}
	f.Fuzz(func(t *testing.T, value string, size int64) {
		part := parseRange(value)
		if part == nil || size < 0 {
			return
		}
		offset, length, err := part.Resolve(size)
		if err == nil && (offset < 0 || length <= 0 || offset+length > size) {
			t.Errorf("%q of %d: %d, %d", value, size, offset, length)
		}
	})
}

func FuzzUploadID(f *testing.F) {
	config := testConfig(nil)
	f.Add("key", config.sealUpload("key", "upload"))
	f.Fuzz(func(t *testing.T, key, id string) {
		upload, err := config.openUpload(key, id)
		if err != nil {
			return
		}
		if again, err := config.openUpload(key, config.sealUpload(key, upload)); err != nil || again != upload {
			t.Errorf("%q opened to %q, and that to %q, %v", id, upload, again, err)
		}
	})
}

func FuzzCompleteXML(f *testing.F) {
	f.Add([]byte(`<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"a"</ETag></Part><Part><PartNumber>7</PartNumber></Part></CompleteMultipartUpload>`))
	f.Fuzz(func(t *testing.T, body []byte) {
		parts, err := parseComplete(body)
		last := 0
		for _, part := range parts {
			if part.Number <= last || part.Number > storage.MaxParts {
				t.Errorf("part %d after %d", part.Number, last)
			}
			last = part.Number
		}
		if err == nil && len(parts) == 0 {
			t.Error("no parts")
		}
	})
}

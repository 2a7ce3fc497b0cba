package s3

import (
	"context"
	"encoding/xml"
	"net/http"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

func TestPatchOverwritesAPart(t *testing.T) {
	f := newFront(t, nil)
	f.put("k", []byte("0123456789"), storage.SetOptions{})
	f.want(200, http.MethodPatch, path("k"), []byte("abc"), "Content-Range", "bytes 2-4/*")
	f.want(200, http.MethodPatch, path("k"), []byte("z"), "Content-Range", "bytes 11-11/12")
	if got := f.stored("k"); string(got) != "01abc56789\x00z" {
		t.Errorf("stored %q", got)
	}
	for _, value := range []string{"", "bytes 2-4", "bytes 4-2/*", "bytes x-4/*", "bytes -2-4/*", "2-4/*", "bytes 2-4/x", "bytes 0-9223372036854775807/*"} {
		f.refused(400, "InvalidArgument", http.MethodPatch, path("k"), []byte("abc"), "Content-Range", value)
	}
	f.refused(400, "IncompleteBody", http.MethodPatch, path("k"), []byte("ab"), "Content-Range", "bytes 2-4/*")
	f.refused(501, "NotImplemented", http.MethodPatch, path("k"), []byte("abc"), "Content-Range", "bytes 2-4/*", "If-Match", "x")
	f.refused(400, "BadDigest", http.MethodPatch, path("k"), []byte("abc"), "Content-Range", "bytes 0-2/*", "Content-Md5", "AAAAAAAAAAAAAAAAAAAAAA==")
	if got := f.stored("k"); string(got) != "01abc56789\x00z" {
		t.Errorf("stored %q", got)
	}
	capabilities := f.store.Capabilities()
	capabilities.PartialWrite = false
	f.handler.SetConfig(testConfig(override{Storage: f.store, capabilities: &capabilities}))
	f.refused(501, "NotImplemented", http.MethodPatch, path("k"), []byte("abc"), "Content-Range", "bytes 0-2/*")
}

func TestAttributesOfAnObject(t *testing.T) {
	f := newFront(t, nil)
	info := f.put("k", []byte("data"), storage.SetOptions{Checksums: storage.Checksums{CRC32: []byte{0xad, 0xf3, 0xf3, 0x63}}})
	a := f.want(200, http.MethodGet, path("k")+"?attributes", nil, "X-Amz-Object-Attributes", "ETag,Checksum", "X-Amz-Object-Attributes", "ObjectSize, StorageClass,ObjectParts")
	var got struct {
		ETag, StorageClass string
		ObjectSize         int64
		Checksum           struct{ ChecksumCRC32, ChecksumType string }
	}
	if err := xml.Unmarshal(a.body, &got); err != nil || got.ETag != info.ETag || got.ObjectSize != 4 || got.StorageClass != "STANDARD" || got.Checksum.ChecksumCRC32 != "rfPzYw==" {
		t.Errorf("%s: %v", a.body, err)
	}
	f.refused(400, "InvalidArgument", http.MethodGet, path("k")+"?attributes", nil)
	f.refused(404, "NoSuchKey", http.MethodGet, path("none")+"?attributes", nil, "X-Amz-Object-Attributes", "ETag")
}

func TestEveryObjectIsItsNullVersion(t *testing.T) {
	f := newFront(t, nil)
	for _, key := range []string{"a", "b", "dir/c"} {
		f.put(key, nil, storage.SetOptions{})
	}
	var got struct {
		XMLName xml.Name `xml:"ListVersionsResult"`
		Version []struct {
			Key, VersionId string
			IsLatest       bool
		}
		CommonPrefixes []struct{ Prefix string }
		IsTruncated    bool
		NextKeyMarker  string
	}
	a := f.want(200, http.MethodGet, "/assets?versions&max-keys=2&delimiter=%2F", nil)
	if err := xml.Unmarshal(a.body, &got); err != nil || len(got.Version) != 2 || got.Version[0].VersionId != "null" || !got.Version[0].IsLatest || got.NextKeyMarker != "b" {
		t.Errorf("%s: %v", a.body, err)
	}
	a = f.want(200, http.MethodGet, "/assets?versions&max-keys=2&delimiter=%2F&key-marker=b&version-id-marker=null", nil)
	if !strings.Contains(string(a.body), "<Prefix>dir/</Prefix>") || strings.Contains(string(a.body), "<Version>") {
		t.Errorf("%s", a.body)
	}
}

func TestLoopsOfMuxesAreCut(t *testing.T) {
	var hops int
	f := newFront(t, override{Storage: memory.New(0), stat: func(ctx context.Context, _ string, _ storage.StatOptions) (storage.Info, error) {
		hops = storage.Hops(ctx)
		return storage.Info{ETag: "x"}, nil
	}})
	f.want(200, http.MethodHead, path("k"), nil, storage.HopHeader, "7")
	if hops != 7 {
		t.Errorf("the storage was told of %d hops", hops)
	}
	a := f.refused(508, "LoopDetected", http.MethodGet, path("k"), nil, storage.HopHeader, "8")
	if a.Header.Get("x-storagemux-error-code") != "STORAGE_MUX.RECURSION_DEPTH_EXCEEDED" {
		t.Errorf("got %v", a.Header)
	}
	f.refused(400, "InvalidArgument", http.MethodGet, path("k"), nil, storage.HopHeader, "x")
}

func TestPresignedCopyIsACopyAndNotAnEmptyPut(t *testing.T) {
	f := newFront(t, nil, func(c *Config) { c.Auth = AuthNone })
	f.put("from", []byte("data"), storage.SetOptions{})
	a := f.send(f.request(http.MethodPut, path("to")+"?X-Amz-Algorithm=x&x-amz-copy-source=assets%2Ffrom", nil))
	if a.StatusCode != 200 || string(f.stored("to")) != "data" {
		t.Errorf("%d %s; stored %q", a.StatusCode, a.body, f.stored("to"))
	}
}

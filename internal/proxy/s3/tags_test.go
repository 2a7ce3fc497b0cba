package s3

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	miniotags "github.com/minio/minio-go/v7/pkg/tags"

	"github.com/suaveplan/storagemux/internal/storage"
)

func (f *front) wantTags(key string, want map[string]string) {
	f.t.Helper()
	got, err := storage.GetTags(f.t.Context(), f.store, key)
	if err != nil || !maps.Equal(got, want) {
		f.t.Errorf("%q has the tags %q, %v; want %q", key, got, err, want)
	}
	count := f.want(200, http.MethodHead, path(key), nil).Header.Get("X-Amz-Tagging-Count")
	if len(want) == 0 && count != "" || len(want) > 0 && count != fmt.Sprint(len(want)) {
		f.t.Errorf("%q says that it has %q tags, want %d", key, count, len(want))
	}
}

func taggingXML(pairs ...string) []byte {
	var b bytes.Buffer
	b.WriteString(`<Tagging xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><TagSet>`)
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "<Tag><Key>%s</Key><Value>%s</Value></Tag>", pairs[i], pairs[i+1])
	}
	b.WriteString("</TagSet></Tagging>")
	return b.Bytes()
}

func TestTagsAreGivenReadChangedAndRemoved(t *testing.T) {
	f := newFront(t, nil)
	f.want(200, http.MethodPut, path("k"), []byte("data"), "X-Amz-Tagging", "color=blue&with+space=a%3Db&empty=")
	given := map[string]string{"color": "blue", "with space": "a=b", "empty": ""}
	f.wantTags("k", given)
	a := f.want(200, http.MethodGet, path("k")+"?tagging", nil)
	if want := "<TagSet><Tag><Key>color</Key><Value>blue</Value></Tag><Tag><Key>empty</Key><Value></Value></Tag><Tag><Key>with space</Key><Value>a=b</Value></Tag></TagSet>"; !strings.Contains(string(a.body), want) {
		t.Errorf("got %s", a.body)
	}
	if got := f.want(200, http.MethodGet, path("k"), nil).Header.Get("X-Amz-Tagging-Count"); got != "3" {
		t.Errorf("a GET counts %q tags", got)
	}
	f.want(200, http.MethodPut, path("k")+"?tagging", taggingXML("a", "1", "ü", ""))
	f.wantTags("k", map[string]string{"a": "1", "ü": ""})
	f.want(200, http.MethodPut, path("k")+"?tagging", taggingXML())
	f.wantTags("k", nil)
	f.want(200, http.MethodPut, path("k")+"?tagging", taggingXML("a", "1"))
	f.want(204, http.MethodDelete, path("k")+"?tagging", nil)
	f.wantTags("k", nil)
	if got := f.stored("k"); string(got) != "data" {
		t.Errorf("tags changed the content to %q", got)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		f.refused(404, "NoSuchKey", method, path("none")+"?tagging", taggingXML("a", "1"))
		f.refused(404, "NoSuchVersion", method, path("k")+"?tagging&versionId=7", taggingXML("a", "1"))
	}

	upload := f.createUpload("parts", "X-Amz-Tagging", "a=1")
	part := f.want(200, http.MethodPut, path("parts")+"?partNumber=1&uploadId="+url.QueryEscape(upload), []byte("part"))
	f.want(200, http.MethodPost, path("parts")+"?uploadId="+url.QueryEscape(upload), completeXML(part.Header.Get("ETag")))
	f.wantTags("parts", map[string]string{"a": "1"})
}

func TestTagsThatS3DoesNotAllowAreRefused(t *testing.T) {
	f := newFront(t, nil)
	f.want(200, http.MethodPut, path("k"), []byte("data"), "X-Amz-Tagging", "old=1")
	eleven := make([]string, 0, 22)
	for i := range 11 {
		eleven = append(eleven, fmt.Sprint(i), "x")
	}
	astral := strings.Repeat("𐐀", 64) // 128 units of UTF-16
	for name, tc := range map[string]struct {
		pairs []string
		code  string
	}{
		"eleven tags":           {eleven, "BadRequest"},
		"no key":                {[]string{"", "x"}, "InvalidTag"},
		"a key too long":        {[]string{strings.Repeat("k", 129), "x"}, "InvalidTag"},
		"a key too long beyond": {[]string{astral + "𐐀", "x"}, "InvalidTag"},
		"a value too long":      {[]string{"k", strings.Repeat("ü", 257)}, "InvalidTag"},
		"a key twice":           {[]string{"k", "1", "k", "2"}, "InvalidTag"},
		"a system tag":          {[]string{"aws:k", "1"}, "InvalidTag"},
		"another system tag":    {[]string{"AWS:k", "1"}, "InvalidTag"},
		"a sign in a key":       {[]string{"k*", "1"}, "InvalidTag"},
		"a line in a value":     {[]string{"k", "a\nb"}, "InvalidTag"},
	} {
		f.refused(400, tc.code, http.MethodPut, path("k")+"?tagging", taggingXML(tc.pairs...))
		var header []string
		for i := 0; i < len(tc.pairs); i += 2 {
			header = append(header, url.QueryEscape(tc.pairs[i])+"="+url.QueryEscape(tc.pairs[i+1]))
		}
		f.refused(400, tc.code, http.MethodPut, path("k"), []byte("new"), "X-Amz-Tagging", strings.Join(header, "&"))
		f.refused(400, tc.code, http.MethodPost, path("k")+"?uploads", nil, "X-Amz-Tagging", strings.Join(header, "&"))
		if t.Failed() {
			t.Fatalf("of %s", name)
		}
	}
	f.refused(400, "InvalidArgument", http.MethodPut, path("k"), []byte("new"), "X-Amz-Tagging", "a=%zz")
	for _, bad := range []string{"", "<Tagging/>", "<Other><TagSet/></Other>", "<Tagging><TagSet>", "<Tagging><TagSet><Tag><Key>a</Key></Tag></TagSet></Tagging>",
		"<Tagging><TagSet><Tag><Value>a</Value></Tag></TagSet></Tagging>"} {
		f.refused(400, "MalformedXML", http.MethodPut, path("k")+"?tagging", []byte(bad))
	}
	f.refused(400, "EntityTooLarge", http.MethodPut, path("k")+"?tagging", make([]byte, maxTagsXML+1))
	f.wantTags("k", map[string]string{"old": "1"})
	if got := f.stored("k"); string(got) != "data" {
		t.Errorf("%q was stored", got)
	}
	f.want(200, http.MethodPut, path("k")+"?tagging", taggingXML(astral, strings.Repeat("ü", 256)))
}

func TestTagsOnStoresThatKeepNone(t *testing.T) {
	capabilities := storage.AllCapabilities()
	capabilities.Tagging = false
	f := newFront(t, override{Storage: newFront(t, nil).store, capabilities: &capabilities})
	f.put("k", []byte("data"), storage.SetOptions{})
	if a := f.want(200, http.MethodGet, path("k")+"?tagging", nil); !strings.Contains(string(a.body), "<TagSet></TagSet>") {
		t.Errorf("got %s", a.body)
	}
	f.refused(404, "NoSuchKey", http.MethodGet, path("none")+"?tagging", nil)
	f.refused(501, "NotImplemented", http.MethodPut, path("k")+"?tagging", taggingXML("a", "1"))
	f.refused(501, "NotImplemented", http.MethodDelete, path("k")+"?tagging", nil)
	f.refused(501, "NotImplemented", http.MethodPut, path("k"), []byte("new"), "X-Amz-Tagging", "a=1")
	f.refused(501, "NotImplemented", http.MethodPut, path("copy"), nil, "X-Amz-Copy-Source", "assets/k", "X-Amz-Tagging", "a=1", "X-Amz-Tagging-Directive", "REPLACE")
	f.want(200, http.MethodPut, path("copy"), nil, "X-Amz-Copy-Source", "assets/k")
	f.want(200, http.MethodPut, path("k"), []byte("new"), "X-Amz-Tagging", "")
}

func TestCopyKeepsOrReplacesTags(t *testing.T) {
	f := newFront(t, nil)
	tags := map[string]string{"a": "1", "ü": "b c"}
	f.put("from", []byte("data"), storage.SetOptions{Tags: tags})
	f.want(200, http.MethodPut, path("kept"), nil, "X-Amz-Copy-Source", "assets/from", "X-Amz-Tagging", "ignored=1")
	f.wantTags("kept", tags)
	f.want(200, http.MethodPut, path("kept"), nil, "X-Amz-Copy-Source", "assets/from", "X-Amz-Metadata-Directive", "REPLACE", "X-Amz-Tagging-Directive", "COPY")
	f.wantTags("kept", tags)
	f.want(200, http.MethodPut, path("other"), nil, "X-Amz-Copy-Source", "assets/from", "X-Amz-Tagging", "new=1", "X-Amz-Tagging-Directive", "REPLACE")
	f.wantTags("other", map[string]string{"new": "1"})
	f.want(200, http.MethodPut, path("none"), nil, "X-Amz-Copy-Source", "assets/from", "X-Amz-Tagging-Directive", "REPLACE")
	f.wantTags("none", nil)
	f.refused(400, "InvalidArgument", http.MethodPut, path("x"), nil, "X-Amz-Copy-Source", "assets/from", "X-Amz-Tagging-Directive", "MERGE")
}

func TestMinioClientTagsObjects(t *testing.T) {
	f := newFront(t, nil)
	client := f.minio(false)
	ctx := t.Context()
	wanted := map[string]string{"color": "blue", "with space": "a=b"}
	if _, err := client.PutObject(ctx, testBucket, "k", strings.NewReader("x"), 1, minio.PutObjectOptions{UserTags: wanted}); err != nil {
		t.Fatal(err)
	}
	f.wantTags("k", wanted)
	changed, err := miniotags.MapToObjectTags(map[string]string{"size": "l"})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.PutObjectTagging(ctx, testBucket, "k", changed, minio.PutObjectTaggingOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := client.GetObjectTagging(ctx, testBucket, "k", minio.GetObjectTaggingOptions{})
	if err != nil || !maps.Equal(got.ToMap(), changed.ToMap()) {
		t.Errorf("got %v, %v", got, err)
	}
	if info, err := client.StatObject(ctx, testBucket, "k", minio.StatObjectOptions{}); err != nil || info.UserTagCount != 1 {
		t.Errorf("stat counts %d, %v", info.UserTagCount, err)
	}
	if err := client.RemoveObjectTagging(ctx, testBucket, "k", minio.RemoveObjectTaggingOptions{}); err != nil {
		t.Error(err)
	}
	f.wantTags("k", nil)
}

func FuzzTags(f *testing.F) {
	f.Add(taggingXML("a", "1", "ü", ""), "a=1&b+c=%C3%BC&d")
	f.Add([]byte("<Tagging><TagSet><Tag><Key>aws:x</Key><Value>1</Value></Tag></TagSet></Tagging>"), "aws%3Ax=1")
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		fromXML, xmlErr := parseTagging(body)
		fromHeader, headerErr := parseTagHeader(header)
		for _, parsed := range []map[string]string{fromXML, fromHeader} {
			if len(parsed) > maxTags {
				t.Errorf("%d tags", len(parsed))
			}
			values := url.Values{}
			for key, value := range parsed {
				values.Set(key, value)
			}
			if again, err := parseTagHeader(values.Encode()); err != nil || !maps.Equal(again, parsed) {
				t.Errorf("%q became %q, %v", parsed, again, err)
			}
		}
		if xmlErr != nil && fromXML != nil || headerErr != nil && fromHeader != nil {
			t.Error("tags and an error")
		}
	})
}

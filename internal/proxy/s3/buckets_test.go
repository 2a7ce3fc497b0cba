package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

func TestTargetOfARequest(t *testing.T) {
	for _, test := range []struct {
		host, path  string
		bucket, key string
	}{
		{"127.0.0.1:80", "/", "", ""},
		{"127.0.0.1:80", "/assets", "assets", ""},
		{"127.0.0.1:80", "/assets/", "assets", ""},
		{"127.0.0.1:80", "/assets/a/b", "assets", "a/b"},
		{"127.0.0.1:80", "/assets//a", "assets", "/a"},
		{"127.0.0.1:80", "/other/a", "other", "a"},
		{"assets.s3.example.com", "/", "assets", ""},
		{"assets.s3.example.com:443", "/a/b", "assets", "a/b"},
		{"ASSETS.s3.Example.com.", "//a", "assets", "/a"},
		{"assets.localhost:9000", "/a", "assets", "a"},
		{"assets.example.com", "/assets/a", "assets", "a"},
		{"assets.s3.example.com.evil.example", "/assets/a", "assets", "a"},
		{"assets.prod.s3.example.com", "/other/a", "other", "a"},
		{"s3.example.com", "/assets/a", "assets", "a"},
		{"assets.", "/assets/a", "assets", "a"},
		{"assets", "/assets/a", "assets", "a"},
		{"assets-storagemux.ns.svc", "/assets/a", "assets", "a"},
	} {
		if got := parseTarget(test.host, test.path, testBucket, []string{"s3.example.com"}); got != (target{test.bucket, test.key}) {
			t.Errorf("%s%s: got %+v", test.host, test.path, got)
		}
	}
	for _, host := range []string{"10.0.0.1:80", "10.0.0.1", "10."} {
		if isHostOf(host, "10", nil) {
			t.Errorf("%s was taken for a virtual host", host)
		}
	}
}

func TestVirtualHostStyleNeedsADomain(t *testing.T) {
	f := newFront(t, nil, func(c *Config) { c.Domains = []string{"s3.example.com"} })
	f.put("a/b", []byte("x"), storage.SetOptions{})
	r := f.request(http.MethodGet, "/a/b", nil)
	r.Host = "assets.s3.example.com"
	if a := f.send(f.sign(r, nil)); string(a.body) != "x" {
		t.Errorf("got %d %s", a.StatusCode, a.body)
	}
	r = f.request(http.MethodGet, "/assets/a/b", nil)
	r.Host = "assets.example.com"
	if a := f.send(f.sign(r, nil)); string(a.body) != "x" {
		t.Errorf("path style at a host that begins with the bucket: got %d %s", a.StatusCode, a.body)
	}
}

func TestTheOneBucket(t *testing.T) {
	f := newFront(t, nil)
	if a := f.want(200, http.MethodGet, "/", nil); !strings.Contains(string(a.body), "<Name>assets</Name>") {
		t.Errorf("ListBuckets: %s", a.body)
	}
	if a := f.want(200, http.MethodHead, "/assets", nil); a.Header.Get("x-amz-bucket-region") != "us-east-1" {
		t.Errorf("HeadBucket: %v", a.Header)
	}
	if a := f.do(http.MethodHead, "/other", nil); a.StatusCode != 404 {
		t.Errorf("HeadBucket of another: %d", a.StatusCode)
	}
	f.want(200, http.MethodPut, "/assets", nil)
	f.want(200, http.MethodPut, "/assets/", []byte("<CreateBucketConfiguration><LocationConstraint>eu</LocationConstraint></CreateBucketConfiguration>"))
	f.refused(403, "AccessDenied", http.MethodPut, "/other", nil)
	f.refused(403, "AccessDenied", http.MethodDelete, "/assets", nil)
	f.refused(404, "NoSuchBucket", http.MethodGet, "/other/key", nil)
	f.refused(404, "NoSuchBucket", http.MethodGet, "/other", nil)
	f.refused(501, "NotImplemented", http.MethodPost, "/", nil)
	f.refused(501, "NotImplemented", http.MethodPost, "/assets", []byte("x"), "Content-Type", "multipart/form-data; boundary=x")
	if a := f.send(f.request(http.MethodOptions, "/assets/k", nil)); a.StatusCode != 403 || a.code() != "AccessForbidden" {
		t.Errorf("preflight: %d %s", a.StatusCode, a.body)
	}
}

func TestSubresourcesOfTheBucket(t *testing.T) {
	f := newFront(t, nil, func(c *Config) { c.Region = "eu-central-1" })
	for sub, want := range map[string]string{
		"location": "eu-central-1", "versioning": "VersioningConfiguration", "acl": "FULL_CONTROL", "accelerate": "AccelerateConfiguration",
		"logging": "BucketLoggingStatus", "notification": "NotificationConfiguration", "requestPayment": "BucketOwner",
	} {
		a := f.want(200, http.MethodGet, "/assets?"+sub, nil)
		if !strings.Contains(string(a.body), want) || xml.Unmarshal(a.body, new(struct{ XMLName xml.Name })) != nil {
			t.Errorf("%s: %s", sub, a.body)
		}
	}
	for sub, code := range map[string]string{
		"policy": "NoSuchBucketPolicy", "lifecycle": "NoSuchLifecycleConfiguration", "cors": "NoSuchCORSConfiguration",
		"website": "NoSuchWebsiteConfiguration", "tagging": "NoSuchTagSet", "replication": "ReplicationConfigurationNotFoundError",
		"encryption": "ServerSideEncryptionConfigurationNotFoundError", "object-lock": "ObjectLockConfigurationNotFoundError",
		"ownershipControls": "OwnershipControlsNotFoundError", "publicAccessBlock": "NoSuchPublicAccessBlockConfiguration",
	} {
		f.refused(404, code, http.MethodGet, "/assets?"+sub, nil)
	}
	for _, sub := range []string{"inventory", "metrics", "analytics"} {
		f.refused(501, "NotImplemented", http.MethodGet, "/assets?"+sub, nil)
	}
	for _, sub := range []string{"policy", "lifecycle", "versioning", "cors", "website", "encryption"} {
		f.refused(501, "NotImplemented", http.MethodPut, "/assets?"+sub, []byte("<x/>"))
		f.refused(501, "NotImplemented", http.MethodDelete, "/assets?"+sub, nil)
	}
}

func TestACLCanBePutBackAsItWasRead(t *testing.T) {
	f := newFront(t, nil)
	f.put("k", nil, storage.SetOptions{})
	acl := f.want(200, http.MethodGet, path("k")+"?acl", nil).body
	f.want(200, http.MethodPut, path("k")+"?acl", acl)
	f.want(200, http.MethodPut, path("k")+"?acl", nil, "X-Amz-Acl", "private")
	f.refused(400, "AccessControlListNotSupported", http.MethodPut, path("k")+"?acl", bytes.Replace(acl, []byte("FULL_CONTROL"), []byte("READ"), 1))
	f.refused(400, "AccessControlListNotSupported", http.MethodPut, path("k")+"?acl", bytes.Replace(acl, []byte("<ID>storagemux</ID><DisplayName>storagemux</DisplayName></Grantee>"), []byte("<ID>x</ID></Grantee>"), 1))
	f.refused(400, "AccessControlListNotSupported", http.MethodPut, path("k")+"?acl", nil, "X-Amz-Acl", "public-read")
}

func TestDeleteObjectsAnswersForEachKey(t *testing.T) {
	store := memory.New(0)
	f := newFront(t, override{Storage: store, remove: func(ctx context.Context, key string) error {
		if key == "fails" {
			return storage.Errorf(storage.CodeAllBackendsDown, "Delete", "down")
		}
		return store.Delete(ctx, key)
	}})
	var body strings.Builder
	body.WriteString("<Delete>")
	for i := range 100 {
		f.put(fmt.Sprint("k", i), nil, storage.SetOptions{})
		fmt.Fprintf(&body, "<Object><Key>k%d</Key></Object>", i)
	}
	body.WriteString("<Object><Key>fails</Key></Object><Object><Key>.storagemux/tmp/x</Key></Object><Object><Key>none</Key></Object>" +
		"<Object><Key>v</Key><VersionId>7</VersionId></Object></Delete>")
	a := f.want(200, http.MethodPost, "/assets?delete", []byte(body.String()))
	var got struct {
		Deleted []struct{ Key string }
		Error   []struct{ Key, Code string }
	}
	if err := xml.Unmarshal(a.body, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Deleted) != 101 || got.Deleted[1].Key != "k1" {
		t.Errorf("deleted %d: %+v", len(got.Deleted), got.Deleted)
	}
	if want := []struct{ Key, Code string }{{"fails", "ServiceUnavailable"}, {".storagemux/tmp/x", "AccessDenied"}, {"v", "NoSuchVersion"}}; !slices.Equal(got.Error, want) {
		t.Errorf("got %+v", got.Error)
	}
	if page, _ := store.List(t.Context(), storage.ListOptions{}); len(page.Objects) != 0 {
		t.Errorf("%d objects are left", len(page.Objects))
	}
	quiet := f.want(200, http.MethodPost, "/assets?delete", []byte("<Delete><Quiet>true</Quiet><Object><Key>a</Key></Object></Delete>"))
	if strings.Contains(string(quiet.body), "Deleted") {
		t.Errorf("quiet: %s", quiet.body)
	}
	for _, bad := range []string{"", "<Delete/>", "<Other/>", "<Delete><Object>", "<Delete>" + strings.Repeat("<Object><Key>k</Key></Object>", 1001) + "</Delete>"} {
		f.refused(400, "MalformedXML", http.MethodPost, "/assets?delete", []byte(bad))
	}
	f.refused(400, "EntityTooLarge", http.MethodPost, "/assets?delete", make([]byte, maxXMLBytes+1))
	f.refused(400, "BadDigest", http.MethodPost, "/assets?delete", []byte("<Delete><Object><Key>a</Key></Object></Delete>"), "Content-Md5", "AAAAAAAAAAAAAAAAAAAAAA==")
}

func TestCopyKeepsOrReplacesWhatBelongsToTheObject(t *testing.T) {
	f := newFront(t, nil)
	data := content(3 * smallBytes)
	info := f.put("from ü+1", data, storage.SetOptions{Headers: storage.Headers{ContentType: "a/b"}, Metadata: map[string]string{"color": "blue", "storagemux-version": "1"}})
	source := "/assets/" + sigv4.EscapePath("from ü+1")
	a := f.want(200, http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", source)
	if !strings.Contains(string(a.body), "<ETag>") || !strings.Contains(string(a.body), "<LastModified>") {
		t.Errorf("got %s", a.body)
	}
	got, err := f.store.Stat(t.Context(), "to", storage.StatOptions{})
	if err != nil || got.Headers.ContentType != "a/b" || got.Metadata["color"] != "blue" || len(got.Metadata) != 1 || !bytes.Equal(f.stored("to"), data) {
		t.Errorf("got %+v, %v", got, err)
	}
	f.want(200, http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", strings.TrimPrefix(source, "/"), "X-Amz-Metadata-Directive", "REPLACE", "Content-Type", "c/d", "X-Amz-Meta-New", "1")
	if got, _ = f.store.Stat(t.Context(), "to", storage.StatOptions{}); got.Headers.ContentType != "c/d" || got.Metadata["color"] != "" || got.Metadata["new"] != "1" {
		t.Errorf("got %+v", got)
	}
	f.want(200, http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", "assets/to", "X-Amz-Metadata-Directive", "REPLACE")
	if !bytes.Equal(f.stored("to"), data) {
		t.Error("a copy onto itself changed the content")
	}

	f.refused(400, "InvalidRequest", http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", "assets/to")
	f.refused(404, "NoSuchKey", http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", "assets/none")
	f.refused(404, "NoSuchBucket", http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", "other/k")
	f.refused(400, "InvalidArgument", http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", "assets")
	f.refused(400, "InvalidArgument", http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", "assets/%zz")
	f.refused(404, "NoSuchVersion", http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", "assets/to?versionId=7")
	f.refused(412, "PreconditionFailed", http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", source, "X-Amz-Copy-Source-If-Match", `"x"`)
	f.refused(412, "PreconditionFailed", http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", source, "X-Amz-Copy-Source-If-None-Match", quote(info.ETag))
}

func TestCopyCanBeReadAgainWhileTheSourceIsTheSame(t *testing.T) {
	store := memory.New(0)
	reads := 0
	var f *front
	f = newFront(t, override{Storage: store, set: func(ctx context.Context, key string, body storage.Body, options storage.SetOptions) (storage.Info, error) {
		if !body.Replayable() {
			t.Error("the copy of an object with a strong tag cannot be read again")
		}
		for range 2 {
			r, err := body.Open()
			if err != nil {
				return storage.Info{}, err
			}
			reads++
			_ = r.Close()
		}
		f.put("from", fmt.Appendf(nil, "changed after %d", reads), storage.SetOptions{})
		_, err := body.Open()
		return storage.Info{}, err
	}})
	if _, err := storage.Set(t.Context(), store, "from", []byte("data"), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	f.store = store
	f.refused(412, "PreconditionFailed", http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", "assets/from")
	if reads != 4 { // it is judged and copied anew, once
		t.Errorf("read %d times", reads)
	}
}

func TestAMuxWhoseStoreThisIsFindsThatItIsWell(t *testing.T) {
	f := newFront(t, nil)
	for _, test := range []struct {
		method, key string
		status      int
	}{
		{"GET", storage.ProbeKey, http.StatusNotFound},
		{"HEAD", storage.ProbeKey, http.StatusNotFound},
		{"PUT", storage.ProbeKey, http.StatusForbidden},
		{"DELETE", storage.ProbeKey, http.StatusForbidden},
		{"GET", storage.ReservedTmp + "x", http.StatusForbidden},
	} {
		if got := f.do(test.method, "/"+testBucket+"/"+test.key, nil); got.StatusCode != test.status {
			t.Errorf("%s of %s: status %d, want %d", test.method, test.key, got.StatusCode, test.status)
		}
	}
}

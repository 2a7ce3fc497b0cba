package s3

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

func (f *front) minio(trailers bool) *minio.Client {
	f.t.Helper()
	address, err := url.Parse(f.server.URL)
	if err != nil {
		f.t.Fatal(err)
	}
	client, err := minio.New(address.Host, &minio.Options{
		Creds: credentials.NewStaticV4(testID, testSecret, ""), Region: "eu-central-1", TrailingHeaders: trailers, MaxRetries: 1,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return client
}

func TestMinioClientPutsGetsListsCopiesAndRemoves(t *testing.T) {
	for _, trailers := range []bool{false, true} {
		f := newFront(t, nil)
		client := f.minio(trailers)
		ctx := t.Context()
		for _, size := range []int{0, 1, smallBytes, 5*smallBytes + 3} {
			key, data := fmt.Sprintf("dir/k %d ü", size), content(size)
			options := minio.PutObjectOptions{
				UserMetadata: map[string]string{"Color": "blue"}, ContentType: "text/plain", DisableMultipart: true,
				SendContentMd5: !trailers,
			}
			if trailers {
				options.Checksum = minio.ChecksumCRC32C
			}
			info, err := client.PutObject(ctx, testBucket, key, bytes.NewReader(data), int64(size), options)
			if err != nil {
				t.Fatalf("trailers %v, %d bytes: put: %v", trailers, size, err)
			}
			object, err := client.GetObject(ctx, testBucket, key, minio.GetObjectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(object)
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("trailers %v, %d bytes: get: %v", trailers, size, err)
			}
			stat, err := client.StatObject(ctx, testBucket, key, minio.StatObjectOptions{})
			if err != nil || stat.ETag != info.ETag || stat.UserMetadata["Color"] != "blue" && stat.UserMetadata["color"] != "blue" {
				t.Errorf("trailers %v, %d bytes: stat: %+v, %v", trailers, size, stat, err)
			}
			if _, err := client.CopyObject(ctx, minio.CopyDestOptions{Bucket: testBucket, Object: "copy"}, minio.CopySrcOptions{Bucket: testBucket, Object: key}); err != nil {
				t.Errorf("copy: %v", err)
			}
		}
		n := 0
		for object := range client.ListObjects(ctx, testBucket, minio.ListObjectsOptions{Recursive: true, MaxKeys: 2}) {
			if object.Err != nil {
				t.Fatal(object.Err)
			}
			n++
			if err := client.RemoveObject(ctx, testBucket, object.Key, minio.RemoveObjectOptions{}); err != nil {
				t.Error(err)
			}
		}
		if n != 5 {
			t.Errorf("listed %d objects", n)
		}
		if ok, err := client.BucketExists(ctx, testBucket); err != nil || !ok {
			t.Errorf("BucketExists: %v, %v", ok, err)
		}
		if ok, err := client.BucketExists(ctx, "other"); err != nil || ok {
			t.Errorf("BucketExists of another: %v, %v", ok, err)
		}
		if buckets, err := client.ListBuckets(ctx); err != nil || len(buckets) != 1 || buckets[0].Name != testBucket {
			t.Errorf("ListBuckets: %v, %v", buckets, err)
		}
	}
}

func TestPresignedURLsOfTheMinioClient(t *testing.T) {
	f := newFront(t, nil)
	client := f.minio(false)
	put, err := client.PresignedPutObject(t.Context(), testBucket, "k ü", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequest(http.MethodPut, put.String(), strings.NewReader("data"))
	if a := f.send(r); a.StatusCode != 200 {
		t.Fatalf("put: %d %s", a.StatusCode, a.body)
	}
	get, err := client.PresignedGetObject(t.Context(), testBucket, "k ü", time.Minute, url.Values{"response-content-type": {"a/b"}})
	if err != nil {
		t.Fatal(err)
	}
	r, _ = http.NewRequest(http.MethodGet, get.String(), nil)
	if a := f.send(r); string(a.body) != "data" || a.Header.Get("Content-Type") != "a/b" {
		t.Errorf("get: %d %s", a.StatusCode, a.body)
	}
	r, _ = http.NewRequest(http.MethodDelete, get.String(), nil)
	if a := f.send(r); a.StatusCode != 403 {
		t.Errorf("a URL for GET was taken for DELETE: %d", a.StatusCode)
	}
}

func TestPresignedURLCarriesHeadersButNotTheChecksumOfNothing(t *testing.T) {
	header := http.Header{}
	query := parseTestQuery(t, "x-amz-meta-color=blue&X-Amz-Acl=private&x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32&X-Amz-Date=1&prefix=a")
	hoist(header, query)
	if len(header) != 2 || header.Get("X-Amz-Meta-Color") != "blue" || header.Get("X-Amz-Acl") != "private" {
		t.Errorf("got %v", header)
	}
}

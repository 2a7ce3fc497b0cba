package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/tags"
)

// script is a client.run of a program that prints a line for each check:
// "ok NAME" or "failed NAME: WHY".
func script(program string, args func() []string) func(context.Context, *endpoint, func(string, error)) {
	return func(ctx context.Context, e *endpoint, tell func(string, error)) {
		env := append(e.awsEnv(), "S3_ENDPOINT="+e.url, "S3_BUCKET="+bucket, "S3_ODD_KEY="+odd)
		out, err := e.run(ctx, env, program, args()...)
		checks := 0
		for line := range strings.Lines(out) {
			switch verdict, rest, _ := strings.Cut(strings.TrimSpace(line), " "); verdict {
			case "ok":
				checks++
				tell(rest, nil)
			case "failed":
				checks++
				name, why, _ := strings.Cut(rest, ": ")
				tell(name, errors.New(why))
			}
		}
		if err == nil && checks == 0 {
			err = fmt.Errorf("it checked nothing: %s", out)
		}
		tell("whole run", err)
	}
}

func testdata(name string) string {
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		panic(err)
	}
	return path
}

var boto3 = client{
	name:    "boto3",
	version: firstLine("/usr/bin/python3", "-c", "import boto3; print(boto3.__version__)"),
	run:     script("/usr/bin/python3", func() []string { return []string{testdata("boto3_checks.py")} }),
}

var sdkJS = client{
	name: "aws-sdk-js",
	version: func(ctx context.Context, e *endpoint) (string, error) {
		return firstLine("node", "-p", fmt.Sprintf("require(%q).version", os.Getenv(envNode)+"/node_modules/@aws-sdk/client-s3/package.json"))(ctx, e)
	},
	run: script("node", func() []string { return []string{filepath.Join(os.Getenv(envNode), "checks.mjs")} }),
}

var minioGo = client{
	name:    "minio-go",
	version: func(context.Context, *endpoint) (string, error) { return "of go.mod", nil },
	run: steps(
		step{"put and get", func(ctx context.Context, e *endpoint) error { return minioRoundTrip(ctx, e, "minio/small", small) }},
		step{"odd keys", func(ctx context.Context, e *endpoint) error { return minioRoundTrip(ctx, e, "minio/"+odd, small) }},
		step{"large in parts", func(ctx context.Context, e *endpoint) error { return minioRoundTrip(ctx, e, "minio/large", large) }},
		step{"unknown length", func(ctx context.Context, e *endpoint) error {
			c, err := minioClient(e)
			if err != nil {
				return err
			}
			_, err = c.PutObject(ctx, bucket, "minio/stream", io.LimitReader(zeros{}, large), -1, minio.PutObjectOptions{PartSize: 5 << 20})
			return err
		}},
		step{"metadata", func(ctx context.Context, e *endpoint) error {
			c, err := minioClient(e)
			if err != nil {
				return err
			}
			_, err = c.PutObject(ctx, bucket, "minio/meta", strings.NewReader("x"), 1, minio.PutObjectOptions{
				ContentType: "text/x-odd", CacheControl: "max-age=7", UserMetadata: map[string]string{"Colour": "blue"}})
			if err != nil {
				return err
			}
			info, err := c.StatObject(ctx, bucket, "minio/meta", minio.StatObjectOptions{})
			if err == nil && (info.ContentType != "text/x-odd" || info.UserMetadata["Colour"] != "blue" || info.Metadata.Get("Cache-Control") != "max-age=7") {
				err = fmt.Errorf("got %+v", info)
			}
			return err
		}},
		step{"tags", func(ctx context.Context, e *endpoint) error {
			c, err := minioClient(e)
			if err != nil {
				return err
			}
			wanted := map[string]string{"color": "dark blue", "level": "1"}
			if _, err := c.PutObject(ctx, bucket, "minio/meta", strings.NewReader("x"), 1, minio.PutObjectOptions{UserTags: wanted}); err != nil {
				return err
			}
			got, err := c.GetObjectTagging(ctx, bucket, "minio/meta", minio.GetObjectTaggingOptions{})
			if err == nil && !maps.Equal(got.ToMap(), wanted) {
				err = fmt.Errorf("got %v", got)
			}
			if err != nil {
				return err
			}
			changed, err := tags.MapToObjectTags(map[string]string{"level": "2"})
			if err != nil {
				return err
			}
			if err := c.PutObjectTagging(ctx, bucket, "minio/meta", changed, minio.PutObjectTaggingOptions{}); err != nil {
				return err
			}
			info, err := c.StatObject(ctx, bucket, "minio/meta", minio.StatObjectOptions{})
			if err == nil && info.UserTagCount != 1 {
				err = fmt.Errorf("%d tags, want 1", info.UserTagCount)
			}
			return errors.Join(err, c.RemoveObjectTagging(ctx, bucket, "minio/meta", minio.RemoveObjectTaggingOptions{}))
		}},
		step{"compose", func(ctx context.Context, e *endpoint) error {
			c, err := minioClient(e)
			if err != nil {
				return err
			}
			_, err = c.ComposeObject(ctx, minio.CopyDestOptions{Bucket: bucket, Object: "minio/composed"},
				minio.CopySrcOptions{Bucket: bucket, Object: "minio/large"}, minio.CopySrcOptions{Bucket: bucket, Object: "minio/small"})
			if err != nil {
				return err
			}
			info, err := c.StatObject(ctx, bucket, "minio/composed", minio.StatObjectOptions{})
			if err == nil && info.Size != large+small {
				err = fmt.Errorf("the composed object has %d bytes", info.Size)
			}
			return err
		}},
		step{"list", func(ctx context.Context, e *endpoint) error {
			c, err := minioClient(e)
			if err != nil {
				return err
			}
			n := 0
			for o := range c.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: "minio/", Recursive: true, MaxKeys: 2}) {
				if o.Err != nil {
					return o.Err
				}
				n++
			}
			if n != 6 {
				return fmt.Errorf("%d objects, want 6", n)
			}
			return nil
		}},
		step{"delete many", func(ctx context.Context, e *endpoint) error {
			c, err := minioClient(e)
			if err != nil {
				return err
			}
			for failed := range c.RemoveObjects(ctx, bucket, c.ListObjects(ctx, bucket, minio.ListObjectsOptions{Prefix: "minio/", Recursive: true}), minio.RemoveObjectsOptions{}) {
				return failed.Err
			}
			return nil
		}},
	),
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func minioClient(e *endpoint) (*minio.Client, error) {
	u, err := url.Parse(e.url)
	if err != nil {
		return nil, err
	}
	return minio.New(u.Host, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: region})
}

func minioRoundTrip(ctx context.Context, e *endpoint, key string, size int) error {
	c, err := minioClient(e)
	if err != nil {
		return err
	}
	path, err := e.file(fmt.Sprintf("up-%d", size), size)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if _, err = c.PutObject(ctx, bucket, key, bytes.NewReader(data), int64(size), minio.PutObjectOptions{PartSize: 5 << 20}); err != nil {
		return err
	}
	object, err := c.GetObject(ctx, bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return err
	}
	defer object.Close()
	back, err := io.ReadAll(object)
	if err == nil && !bytes.Equal(back, data) {
		err = errors.New("what came back differs")
	}
	return err
}

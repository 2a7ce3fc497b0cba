package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// S3 is an S3 service.
type S3 struct {
	Endpoint, Region             string
	AccessKeyID, SecretAccessKey string
	dir                          string
	buckets                      atomic.Int32
}

// Versitygw runs versitygw over a folder.
func Versitygw(t testing.TB, flags ...string) *S3 {
	t.Helper()
	path := binary(t, "STORAGEMUX_VERSITYGW", "versitygw")
	s := &S3{Region: "eu-test-1", AccessKeyID: "test-access", SecretAccessKey: "test-secret", dir: tempDir(t)}
	address := freeAddress(t)
	s.Endpoint = "http://" + address
	args := append([]string{"--port", address, "--access", s.AccessKeyID, "--secret", s.SecretAccessKey, "--region", s.Region, "--quiet", "--keep-alive"}, flags...)
	cmd := exec.Command(path, append(args, "posix", s.dir)...)
	cmd.Env = []string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH")}
	start(t, cmd, address)
	return s
}

// Bucket makes an empty bucket and returns its name.
func (s *S3) Bucket(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("bucket-%d", s.buckets.Add(1))
	if err := os.Mkdir(filepath.Join(s.dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// Debris returns the files in bucket that are no objects: what uploads and
// writes keep under names of versitygw's own.
func (s *S3) Debris(t testing.TB, bucket string) []string {
	t.Helper()
	var found []string
	root := filepath.Join(s.dir, bucket)
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		if err == nil && !entry.IsDir() && strings.HasPrefix(rel, ".sgwtmp") {
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

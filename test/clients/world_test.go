package clients

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The environment in which hack/clients/run.sh runs the tests.
const (
	envBinary = "STORAGEMUX_BINARY"    // the program under test
	envStore  = "STORAGEMUX_VERSITYGW" // versitygw
	envNode   = "STORAGEMUX_NODE_SDK"  // a folder in which aws-sdk-js is installed
)

const (
	bucket    = "assets"
	accessKey = "AKIDCLIENTS"
	secretKey = "clients-secret"
	region    = "us-east-1"
)

// modes are the muxes that the clients meet: a name, its mode and keyspace, and
// its list of backends.
var modes = []struct{ name, mode, keyspace, backends string }{
	{"failover", "failover", "spread", "{name: one}, {name: two}, {name: three}"},
	{"round-robin", "round-robin", "replicated", "{name: one}, {name: one-again}"},
	{"weighted", "weighted", "replicated", "{name: one, weight: 3}, {name: one-again, weight: 1}"},
	{"sticky-by-key", "sticky-by-key", "spread", "{name: one}, {name: two}, {name: three}"},
	{"shield", "shield", "replicated", "{name: one}, {name: two}, {name: three}"},
	{"mirror", "mirror", "replicated", "{name: one}, {name: two}, {name: three}"},
	{"nested", "failover", "replicated", "{name: pair, ref: {kind: StorageMux}}, {name: three}"},
}

// required returns what the environment must say.
func required(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set; run these tests through make test-clients", name)
	}
	return value
}

// process is a program that runs until its test ends.
func process(t *testing.T, ready func() bool, name string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Env = plainEnviron()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is told to end
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(name), text)
		}
	})
	for deadline := time.Now().Add(30 * time.Second); !ready(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready after 30 s", name)
		}
	}
}

// plainEnviron is this process's environment without settings that are meant for
// other S3 clients of the machine.
func plainEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "AWS_") || strings.HasPrefix(entry, "RCLONE_") || strings.HasPrefix(entry, "REQUESTS_")
	})
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// startStore starts an S3 store with a bucket named objects, and returns its URL.
func startStore(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "objects"), 0o755); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	process(t, func() bool { return listens(address) }, required(t, envStore),
		"--port", address, "--access", "store", "--secret", "store-secret", "posix", root)
	return "http://" + address
}

func listens(address string) bool {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// endpoint is one mux as a client sees it.
type endpoint struct {
	mode string
	url  string
	// dir is for the client's files.
	dir string
}

// startMux serves one mux over three stores of its own.
func startMux(t *testing.T, name, mode, keyspace, backends string) *endpoint {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: v1\nkind: Secret\nmetadata: {name: store}\nstringData: {AWS_ACCESS_KEY_ID: store, AWS_SECRET_ACCESS_KEY: store-secret}\n")
	fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Secret\nmetadata: {name: front}\nstringData: {AWS_ACCESS_KEY_ID: %s, AWS_SECRET_ACCESS_KEY: %s}\n", accessKey, secretKey)
	first := startStore(t)
	for backend, url := range map[string]string{"one": first, "one-again": first, "two": startStore(t), "three": startStore(t)} {
		fmt.Fprintf(&text, `---
apiVersion: storagemux.dev/v1alpha1
kind: StorageBackend
metadata: {name: %s}
spec: {s3: {endpoint: %q, bucket: objects, auth: {type: Secret, secretRef: {name: store}}}}
`, backend, url)
	}
	mux := func(name, mode, keyspace, backends, more string) {
		fmt.Fprintf(&text, `---
apiVersion: storagemux.dev/v1alpha1
kind: StorageMux
metadata: {name: %s}
spec:
  mode: %s
  keyspace: %s
  backends: [%s]
%s`, name, mode, keyspace, backends, more)
	}
	mux("pair", "mirror", "replicated", "{name: one}, {name: two}", "  proxy: {type: None}\n")
	mux("front", mode, keyspace, backends, "  frontend: {bucket: "+bucket+", auth: {type: SigV4, secretRefs: [{name: front}]}}\n")
	dir := t.TempDir()
	manifests := filepath.Join(dir, "manifests.yaml")
	if err := os.WriteFile(manifests, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s3, admin := fmt.Sprintf("127.0.0.1:%d", freePort(t)), fmt.Sprintf("127.0.0.1:%d", freePort(t))
	ready := func() bool {
		response, err := http.Get("http://" + admin + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	}
	process(t, ready, required(t, envBinary), "serve", "--manifests", manifests, "--mux", "front", "--s3-address", s3, "--admin-address", admin)
	return &endpoint{mode: name, url: "http://" + s3, dir: dir}
}

// run runs a client's program in its folder. The error holds what it printed.
func (e *endpoint) run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = e.dir
	cmd.Env = append(plainEnviron(), env...)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		text := strings.TrimSpace(string(out))
		return string(out), fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, text[max(0, len(text)-600):])
	}
	return string(out), nil
}

// file writes a file of noise below the endpoint's folder. It was changed an hour ago:
// stores tell times in seconds, and a file of the same second may seem newer.
func (e *endpoint) file(name string, size int) (path string, err error) {
	path = filepath.Join(e.dir, name)
	random := rand.NewChaCha8([32]byte{byte(size)})
	data := make([]byte, size)
	_, _ = random.Read(data)
	ago := time.Now().Add(-time.Hour)
	return path, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644), os.Chtimes(path, ago, ago))
}

func sum(path string) (string, error) {
	data, err := os.ReadFile(path)
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:]), err
}

// same says whether two files hold the same.
func same(a, b string) error {
	first, err := sum(a)
	second, err2 := sum(b)
	switch {
	case err != nil || err2 != nil:
		return errors.Join(err, err2)
	case first != second:
		return fmt.Errorf("%s and %s differ", a, b)
	}
	return nil
}

func contains(text string, want ...string) error {
	for _, w := range want {
		if !strings.Contains(text, w) {
			return fmt.Errorf("%q is missing in %q", w, text[:min(len(text), 600)])
		}
	}
	return nil
}

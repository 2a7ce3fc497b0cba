package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/proxy/spool"
)

// logs is a log that tests read.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

type served struct {
	*Serve
	dir    string
	logs   *logs
	client *minio.Client
}

// start serves good from a folder of its own.
func start(t *testing.T) *served {
	t.Helper()
	s := &served{dir: t.TempDir(), logs: &logs{}}
	writeManifest(t, s.dir, "all.yaml", good)
	var err error
	s.Serve, err = New(Options{
		Manifests: s.dir, S3Address: "127.0.0.1:0", AdminAddress: "127.0.0.1:0",
		Spool: spool.Options{Memory: 1 << 20, Disk: 32 << 20, Dir: t.TempDir()}, DrainTimeout: time.Second,
		Log: slog.New(slog.NewTextHandler(s.logs, nil)), Out: io.Discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run ended with %v", err)
		}
		if t.Failed() {
			t.Log(s.logs.text.String())
		}
	})
	s.client = s.as(t, "AKIDFRONT", "front-secret", transport)
	s.waitFor(t, "readiness", func() bool { status, _ := s.get(t, "/readyz"); return status == 200 })
	return s
}

func (s *served) as(t *testing.T, key, secret string, transport http.RoundTripper) *minio.Client {
	t.Helper()
	client, err := minio.New(s.Addr("s3").String(), &minio.Options{
		Creds: credentials.NewStaticV4(key, secret, ""), Region: "us-east-1", Transport: transport, MaxRetries: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (s *served) get(t *testing.T, path string) (int, string) {
	t.Helper()
	response, err := http.Get("http://" + s.Addr("admin").String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func (s *served) report(t *testing.T) muxconfig.Report {
	t.Helper()
	var r muxconfig.Report
	if _, body := s.get(t, muxconfig.ReportPath); json.Unmarshal([]byte(body), &r) != nil {
		t.Fatalf("the report is %s", body)
	}
	return r
}

func (s *served) waitFor(t *testing.T, what string, happened func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !happened() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *served) put(t *testing.T, key string, data []byte) {
	t.Helper()
	if _, err := s.client.PutObject(t.Context(), "assets", key, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{DisableMultipart: true}); err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
}

func (s *served) expect(t *testing.T, key string, want []byte) {
	t.Helper()
	object, err := s.client.GetObject(t.Context(), "assets", key, minio.GetObjectOptions{})
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	defer object.Close()
	if got, err := io.ReadAll(object); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s read back as %d bytes, equal %t, error %v", key, len(got), bytes.Equal(got, want), err)
	}
}

func random(n int) []byte {
	source := rand.NewChaCha8([32]byte{1})
	data := make([]byte, n)
	_, _ = source.Read(data)
	return data
}

func TestARealClientStoresAndReadsObjects(t *testing.T) {
	s := start(t)
	sizes := []int{0, 1, 1 << 10, 70_000, 9 << 20}
	for _, size := range sizes {
		s.put(t, "objects/"+strings.Repeat("x", size%7)+"/é "+string(rune('a'+size%26)), random(size))
	}
	var listed int
	for info := range s.client.ListObjects(t.Context(), "assets", minio.ListObjectsOptions{Prefix: "objects/", Recursive: true}) {
		if info.Err != nil {
			t.Fatal(info.Err)
		}
		listed++
		s.expect(t, info.Key, random(int(info.Size)))
	}
	if listed != len(sizes) {
		t.Errorf("%d of %d objects are listed", listed, len(sizes))
	}
	// The first member holds them, as files beside the manifest.
	if entries, err := os.ReadDir(filepath.Join(s.dir, "data")); err != nil || len(entries) == 0 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
	if m := s.report(t).Members; m[0].Hits == 0 || m[1].Hits != 0 {
		t.Errorf("the members served %+v and %+v", m[0].Figures, m[1].Figures)
	}
	if status, body := s.get(t, "/metrics"); status != 200 || !strings.Contains(body, `storagemux_requests_total{error="",operation="PutObject",status="200"} 5`) {
		t.Errorf("the metrics answer %d and lack the puts", status)
	}
	if s.logs.contains("front-secret") {
		t.Error("the log holds a secret")
	}
}

func TestOtherKeysAndBucketsAreRefused(t *testing.T) {
	s := start(t)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for _, pair := range [][2]string{{"AKIDFRONT", "wrong"}, {"AKIDOTHER", "front-secret"}} {
		_, err := s.as(t, pair[0], pair[1], transport).StatObject(t.Context(), "assets", "key", minio.StatObjectOptions{})
		if status := minio.ToErrorResponse(err).StatusCode; status != 403 {
			t.Errorf("%v answers %d, %v", pair, status, err)
		}
	}
	if _, err := s.client.StatObject(t.Context(), "others", "key", minio.StatObjectOptions{}); minio.ToErrorResponse(err).StatusCode != 404 {
		t.Errorf("another bucket answers %v", err)
	}
}

func TestReadsAndWritesGoOnWhileTheFirstMemberIsAway(t *testing.T) {
	s := start(t)
	s.put(t, "before", []byte("x"))
	data := filepath.Join(s.dir, "data")
	// A folder that became a file is a store that cannot be reached.
	if err := os.Rename(data, data+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(data, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.put(t, "meanwhile", []byte("y"))
	s.expect(t, "meanwhile", []byte("y"))
	r := s.report(t)
	if m := r.Members[0]; m.State != muxconfig.StateDown || m.LastError == nil {
		t.Fatalf("the member that is away is %+v", m)
	}
	topics := map[string]int{}
	for _, event := range r.Events {
		topics[event.Topic]++
	}
	if topics["storage-mux.backend.down"] != 1 || topics["storage-mux.failover"] == 0 {
		t.Errorf("the events are %v", topics)
	}
	if err := os.Remove(data); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(data+".away", data); err != nil {
		t.Fatal(err)
	}
	s.waitFor(t, "the recovery", func() bool {
		_, err := s.client.StatObject(t.Context(), "assets", "before", minio.StatObjectOptions{})
		return err == nil && s.report(t).Members[0].State == muxconfig.StateUp
	})
	s.expect(t, "before", []byte("x"))
}

func TestChangesOnDiskAreFollowedAndInvalidOnesAreNot(t *testing.T) {
	s := start(t)
	s.put(t, "key", []byte("x"))
	first := s.report(t)

	writeManifest(t, s.dir, "all.yaml", strings.Replace(good, "mode: failover", "mode: random", 1))
	s.waitFor(t, "the complaint", func() bool { return s.logs.contains("spec.mode: Unsupported value") })
	writeManifest(t, s.dir, "all.yaml", strings.Replace(good, "{path: ./data}", "{path: ./elsewhere}", 1))
	s.waitFor(t, "the complaint", func() bool { return s.logs.contains("must not change") })
	if now := s.report(t); *now.Applied != *first.Applied {
		t.Errorf("an invalid manifest was applied: %+v", now.Applied)
	}
	s.expect(t, "key", []byte("x"))

	writeManifest(t, s.dir, "all.yaml", strings.Replace(good, "front-secret", "next-secret", 1))
	s.waitFor(t, "the new document", func() bool { return s.report(t).Applied.Revision > first.Applied.Revision })
	if _, err := s.client.StatObject(t.Context(), "assets", "key", minio.StatObjectOptions{}); minio.ToErrorResponse(err).StatusCode != 403 {
		t.Errorf("the old key answers %v", err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	if _, err := s.as(t, "AKIDFRONT", "next-secret", transport).StatObject(t.Context(), "assets", "key", minio.StatObjectOptions{}); err != nil {
		t.Errorf("the new key answers %v", err)
	}
	if now := s.report(t); now.BootID != first.BootID || now.Members[0].Hits == 0 {
		t.Errorf("state did not survive: %+v", now.Members[0].Figures)
	}
}

func TestASecondServeOnTheSamePortSaysSo(t *testing.T) {
	s := start(t)
	_, err := New(Options{
		Manifests: s.dir, S3Address: s.Addr("s3").String(), AdminAddress: "127.0.0.1:0",
		Log: slog.New(slog.DiscardHandler), Out: io.Discard,
	})
	if err == nil || !strings.Contains(err.Error(), "listen for s3") {
		t.Errorf("New gave %v", err)
	}
}

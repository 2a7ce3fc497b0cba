package s3

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// noSurroundings takes away what this machine would give a pod.
func noSurroundings(t *testing.T) {
	t.Helper()
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(home, "none"))
	// Nobody answers where the instance's metadata service would be.
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
}

// caller is a store's server that tells who asked last.
func caller(t *testing.T) (endpoint string, last func() (id, token string)) {
	t.Helper()
	var mu sync.Mutex
	var header http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		header = r.Header.Clone()
		mu.Unlock()
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
	}))
	t.Cleanup(server.Close)
	return server.URL, func() (string, string) {
		mu.Lock()
		defer mu.Unlock()
		_, rest, _ := strings.Cut(header.Get("Authorization"), "Credential=")
		id, _, _ := strings.Cut(rest, "/")
		return id, header.Get("X-Amz-Security-Token")
	}
}

// ambientStore returns a store that finds its credentials in its surroundings.
func ambientStore(t *testing.T, endpoint string, edits ...func(*Config)) *Storage {
	t.Helper()
	return over(t, endpoint, append([]func(*Config){func(c *Config) { c.Auth = Auth{Type: Ambient}; c.Region = "eu-test-1" }}, edits...)...)
}

func TestAmbientCredentialsOfTheEnvironmentAreUsed(t *testing.T) {
	noSurroundings(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "env-id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "env-secret")
	t.Setenv("AWS_SESSION_TOKEN", "env-token")
	endpoint, last := caller(t)
	if err := ambientStore(t, endpoint).Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id, token := last(); id != "env-id" || token != "env-token" {
		t.Errorf("asked as %q with %q", id, token)
	}
}

func TestAmbientCredentialsOfASharedFileAreUsed(t *testing.T) {
	noSurroundings(t)
	path := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(path, []byte("[default]\naws_access_key_id = file-id\naws_secret_access_key = file-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", path)
	endpoint, last := caller(t)
	if err := ambientStore(t, endpoint).Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id, _ := last(); id != "file-id" {
		t.Errorf("asked as %q", id)
	}
}

// A container's endpoint, as EKS Pod Identity and ECS have it, with a token that
// is read from a file each time, and credentials that expire.
func TestAmbientCredentialsOfAContainerAreUsedAndRenewed(t *testing.T) {
	noSurroundings(t)
	var asked atomic.Int32
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		if got := r.Header.Get("Authorization"); got != "pod-token" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"Code":"Denied","Message":%q}`, got)
			return
		}
		expiration := time.Now().Add(time.Hour)
		if n == 1 {
			expiration = time.Now().Add(50 * time.Millisecond)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"AccessKeyId": fmt.Sprint("pod-id-", n), "SecretAccessKey": "pod-secret", "Token": "pod-session", "Expiration": expiration.UTC().Format(time.RFC3339Nano),
		})
	}))
	defer agent.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("pod-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.URL+"/v1/credentials")
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token)
	endpoint, last := caller(t)
	s := ambientStore(t, endpoint)
	for _, want := range []string{"pod-id-1", "pod-id-2", "pod-id-2"} {
		if err := s.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		if id, session := last(); id != want || session != "pod-session" {
			t.Errorf("asked as %q with %q, want %s", id, session, want)
		}
		time.Sleep(60 * time.Millisecond) // past the first expiration
	}
}

// A web identity token, as IAM roles for service accounts give it, is exchanged
// at the region's security token service.
func TestAmbientCredentialsOfAWebIdentityAreUsed(t *testing.T) {
	noSurroundings(t)
	var form string
	sts := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		form = r.Host + " " + r.URL.RawQuery + " " + string(body)
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
			<AccessKeyId>web-id</AccessKeyId><SecretAccessKey>web-secret</SecretAccessKey><SessionToken>web-session</SessionToken>
			<Expiration>%s</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	defer sts.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("service-account-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/storagemux")
	endpoint, last := caller(t)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: sts.Certificate().Raw})
	s := ambientStore(t, endpoint, func(c *Config) { c.CABundle = ca })
	// The name of the service is known; its address here is the fake's.
	dial := s.transport.DialContext
	s.transport.DialContext = func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		if address == "sts.eu-test-1.amazonaws.com:443" {
			address = strings.TrimPrefix(sts.URL, "https://")
		}
		return dial(ctx, network, address)
	}
	s.transport.TLSClientConfig.ServerName = "example.com" // which is in the fake's certificate
	if err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id, session := last(); id != "web-id" || session != "web-session" {
		t.Errorf("asked as %q with %q", id, session)
	}
	for _, want := range []string{"sts.eu-test-1.amazonaws.com", "AssumeRoleWithWebIdentity", "service-account-token", "role%2Fstoragemux"} {
		if !strings.Contains(form, want) {
			t.Errorf("the service was asked %q, without %q", form, want)
		}
	}
}

func TestWithoutCredentialsAroundNothingIsAskedUnsigned(t *testing.T) {
	noSurroundings(t)
	agent := httptest.NewServer(http.NotFoundHandler())
	defer agent.Close()
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.URL)
	endpoint, last := caller(t)
	s := ambientStore(t, endpoint)
	for range 2 {
		if err := s.Check(t.Context()); err == nil || storage.Classify(err) == storage.ClassAbort {
			t.Errorf("got %v", err)
		}
	}
	if id, _ := last(); id != "" {
		t.Errorf("asked as %q", id)
	}
}

// rotating takes requests of either of two keys, slowly.
func rotating(t *testing.T) (endpoint string, seen *sync.Map) {
	t.Helper()
	seen = &sync.Map{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, rest, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		id, _, _ := strings.Cut(rest, "/")
		seen.Store(id, true)
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Length", "200000")
			for range 20 {
				_, _ = w.Write(make([]byte, 10_000))
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond)
			}
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("ETag", `"e"`)
	}))
	t.Cleanup(server.Close)
	return server.URL, seen
}

func TestCredentialsAreSwappedWithoutDroppingARequest(t *testing.T) {
	endpoint, seen := rotating(t)
	store := func(id string) *Storage {
		s, err := New(Config{Endpoint: endpoint, Bucket: "b", Auth: Auth{Type: Static, AccessKeyID: id, SecretAccessKey: "secret of " + id}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	var current atomic.Pointer[Storage]
	current.Store(store("key-0"))
	stop := make(chan struct{})
	var done atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := current.Load()
				var err error
				if i%2 == 0 {
					var data []byte
					if data, _, err = storage.Get(t.Context(), s, "key"); err == nil && len(data) != 200_000 {
						err = io.ErrUnexpectedEOF
					}
				} else {
					_, err = s.SetStream(t.Context(), "key", storage.Stream(io.LimitReader(endlessA{}, 300_000), 300_000), storage.SetOptions{})
				}
				if err != nil {
					t.Errorf("a request failed: %v", err)
				}
				done.Add(1)
			}
		})
	}
	for n := 1; n <= 5; n++ {
		for before := done.Load(); done.Load() < before+8; { // requests run on the old one
			time.Sleep(time.Millisecond)
		}
		old := current.Swap(store(fmt.Sprint("key-", n)))
		if err := old.Close(); err != nil {
			t.Error(err)
		}
	}
	for before := done.Load(); done.Load() < before+8; {
		time.Sleep(time.Millisecond)
	}
	close(stop)
	all.Wait()
	_ = current.Load().Close()
	for n := range 6 {
		if _, used := seen.Load(fmt.Sprint("key-", n)); !used {
			t.Errorf("key-%d was never used", n)
		}
	}
}

func TestAWrongClockCostsAStreamNothingThatWasNotReadYet(t *testing.T) {
	const ahead = 3 * time.Hour
	var requests int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		signed, err := time.Parse(amzDateFormat, r.Header.Get("X-Amz-Date"))
		if err != nil || time.Until(signed) < ahead-time.Minute {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "<Error><Code>RequestTimeTooSkewed</Code></Error>")
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		if n != chunkedLength(4<<20, true) {
			t.Errorf("%d bytes came", n)
		}
		w.Header().Set("ETag", `"e"`)
	}))
	defer server.Close()
	body := storage.Stream(io.LimitReader(endlessA{}, 4<<20), 4<<20)
	if _, err := over(t, server.URL).SetStream(t.Context(), "k", body, storage.SetOptions{}); err != nil || requests != 2 {
		t.Errorf("%v after %d requests, want 2", err, requests)
	}
}

func TestRequestsCarryThroughHowManyMuxesTheyCame(t *testing.T) {
	var hops string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hops = r.Header.Get(storage.HopHeader) }))
	defer server.Close()
	s := over(t, server.URL)
	for ctx, want := range map[context.Context]string{t.Context(): "1", storage.WithHops(t.Context(), 4): "5"} {
		if _ = s.Delete(ctx, "k"); hops != want {
			t.Errorf("%s is %q, want %s", storage.HopHeader, hops, want)
		}
	}
}

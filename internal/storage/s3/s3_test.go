package s3

import (
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

// open returns a store over an empty bucket of server, changed by the edits.
func open(t testing.TB, server *servers.S3, edits ...func(*Config)) *Storage {
	t.Helper()
	cfg := Config{
		Endpoint: server.Endpoint, Region: server.Region, Bucket: server.Bucket(t),
		Auth: Auth{Type: Static, AccessKeyID: server.AccessKeyID, SecretAccessKey: server.SecretAccessKey},
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tried is open of a store that is known to verify checksums.
func tried(t testing.TB, server *servers.S3, edits ...func(*Config)) *Storage {
	t.Helper()
	s := open(t, server, edits...)
	v := s.tryChecksums()
	if !v.verifies {
		t.Fatal("versitygw does not verify checksums")
	}
	s.trial.verdict.Store(v)
	return s
}

func TestS3OnVersitygwKeepsTheContract(t *testing.T) {
	server := servers.Versitygw(t)
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		return tried(t, server, func(c *Config) { c.Prefix = "some/prefix/" })
	}, storagetest.Recorded(t, "s3 on versitygw", storagetest.Options{
		NoKeyUnderKey: true,
		Keys:          keysOnVersitygw,
		Reopen: func(t *testing.T, s storage.Storage) storage.Storage {
			bucket := s.(*Storage).target.bucket
			return tried(t, server, func(c *Config) { c.Bucket, c.Prefix = bucket, "some/prefix/" })
		},
		Debris: func(t *testing.T, s storage.Storage) []string {
			return server.Debris(t, s.(*Storage).target.bucket)
		},
	}))
}

func TestS3ThroughABrokenNetworkKeepsTheContract(t *testing.T) {
	server := servers.Versitygw(t)
	bucket := server.Bucket(t)
	storagetest.RunFaults(t, storagetest.Remote{
		Address: strings.TrimPrefix(server.Endpoint, "http://"),
		Open: func(t *testing.T, address string) storage.Storage {
			return open(t, server, func(c *Config) { c.Endpoint, c.Bucket = "http://"+address, bucket })
		},
		Options: storagetest.Options{Debris: func(t *testing.T, _ storage.Storage) []string { return server.Debris(t, bucket) }},
	})
}

// keysOnVersitygw says what becomes of keys where versitygw makes paths of them.
func keysOnVersitygw(key string) storagetest.KeyFate {
	segments := strings.Split(key, "/")
	for _, segment := range segments {
		if len(segment) > 255 {
			return storagetest.RefusedKey
		}
	}
	last := segments[len(segments)-1]
	inner := segments[:len(segments)-1]
	unclean := func(segment string) bool { return segment == "" || segment == "." || segment == ".." }
	switch {
	case last == "" && len(inner) > 0:
		return storagetest.RefusedKey // a folder, which has no content
	case unclean(last), slices.ContainsFunc(inner, unclean):
		return storagetest.Mangled
	}
	return storagetest.Held
}

func TestCheckTellsWhatIsWrong(t *testing.T) {
	server := servers.Versitygw(t)
	tests := map[string]struct {
		edit func(*Config)
		want storage.Code
	}{
		"healthy":          {func(*Config) {}, ""},
		"missing bucket":   {func(c *Config) { c.Bucket = "no-such-bucket" }, storage.CodeBucketNotFound},
		"wrong secret":     {func(c *Config) { c.Auth.SecretAccessKey = "wrong" }, storage.CodeAccessDenied},
		"unknown key":      {func(c *Config) { c.Auth.AccessKeyID = "unknown" }, storage.CodeAccessDenied},
		"anonymous":        {func(c *Config) { c.Auth = Auth{Type: Anonymous} }, storage.CodeAccessDenied},
		"nobody listening": {func(c *Config) { c.Endpoint = "http://127.0.0.1:1" }, storage.CodeUnavailable},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := open(t, server, tt.edit)
			defer s.Close()
			if err := s.Check(t.Context()); storage.CodeOf(err) != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// What a cut connection leaves is the reason for commit tokens: the server
// itself must see that a body is not whole.
func TestAConnectionCutInTheBodyLeavesTheOldObject(t *testing.T) {
	server := servers.Versitygw(t)
	s := open(t, server)
	defer s.Close()
	const size = 3 << 20
	known := storage.Checksums{CRC32C: crc32cOfA(size)}
	tests := map[string]struct {
		verifies bool
		sums     storage.Checksums
		sent     int64 // what goes over the wire
		ending   int64 // bytes at its end, which say only that the content has ended
	}{
		"signed chunks":        {sent: chunkedLength(size, true), ending: 86},
		"a CRC-32 behind it":   {verifies: true, sent: chunkedLength(size, false), ending: 3 + int64(trailerRoom)},
		"a CRC-32C in front":   {verifies: true, sums: known, sent: size},
		"a checksum and signs": {sums: known, sent: chunkedLength(size, true), ending: 86},
	}
	for name, tt := range tests {
		for _, short := range []int64{1, 2, 30, 80, tt.ending + 2, tt.ending + 3, chunkSize, size / 2} {
			t.Run(fmt.Sprintf("%s, %d bytes short", name, short), func(t *testing.T) {
				key, old := fmt.Sprintf("key-%t-%d-%d", tt.verifies, tt.sent, short), "the old object"
				if _, err := storage.Set(t.Context(), s, key, []byte(old), storage.SetOptions{}); err != nil {
					t.Fatal(err)
				}
				cut := servers.CutAfter(t, strings.TrimPrefix(server.Endpoint, "http://"), tt.sent-short)
				through := open(t, server, func(c *Config) { c.Endpoint, c.Bucket = "http://"+cut, s.target.bucket })
				through.trial.verdict.Store(&verdict{verifies: tt.verifies, until: time.Now().Add(time.Hour)})
				body := storage.Stream(io.LimitReader(endlessA{}, size), size)
				_, err := through.SetStream(t.Context(), key, body, storage.SetOptions{Checksums: tt.sums})
				through.Close()
				var failed *storage.Error
				if !errors.As(err, &failed) {
					t.Fatalf("got %v", err)
				}
				// With all of the content there, a server may do without the ending.
				// Then the write must say that its outcome is unknown.
				if short <= tt.ending+2 && failed.Outcome == storage.OutcomeUnknown {
					return
				}
				// The server goes on with what it has for a moment.
				for range 10 {
					time.Sleep(20 * time.Millisecond)
					if got, _, err := storage.Get(t.Context(), s, key); err != nil || string(got) != old {
						t.Fatalf("the object has %d bytes, %v", len(got), err)
					}
				}
			})
		}
	}
}

func sumOf(h hash.Hash, r io.Reader) []byte {
	_, _ = io.Copy(h, r) // neither fails
	return h.Sum(nil)
}

func TestAStoreIsTrustedWithChecksumsOnceItHasRefusedWrongOnes(t *testing.T) {
	type answer struct {
		status int
		code   string
	}
	refused, stored := answer{400, "BadDigest"}, answer{200, ""}
	tests := map[string]struct {
		header, trailer answer
		verifies        bool
		again           time.Duration
		deletes         int
	}{
		"refuses both":              {refused, refused, true, 0, 0},
		"ignores a header":          {stored, refused, false, trialLater, 1},
		"ignores a trailer":         {refused, stored, false, trialLater, 1},
		"does not know trailers":    {refused, answer{501, "NotImplemented"}, false, trialLater, 0},
		"lets nobody write":         {answer{403, "AccessDenied"}, refused, false, trialLater, 0},
		"is out of order":           {answer{500, "InternalError"}, refused, false, trialAgain, 0},
		"goes away in between":      {refused, answer{503, "SlowDown"}, false, trialAgain, 0},
		"finds fault with the rest": {answer{400, "InvalidRequest"}, refused, false, trialLater, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var deletes, other int
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				a := answer{status: http.StatusNoContent}
				switch {
				case r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, "/b/"+storage.ReservedTmp):
					deletes++
				case r.Header.Get(crc32Header) != "" && string(body) == "x":
					a = tt.header
				case r.Header.Get("X-Amz-Trailer") == trailerName:
					a = tt.trailer
				default:
					other++
				}
				w.WriteHeader(a.status)
				if a.code != "" {
					fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", a.code)
				}
			}))
			defer server.Close()
			v := over(t, server.URL).tryChecksums()
			if v.verifies != tt.verifies || deletes != tt.deletes || other != 0 {
				t.Errorf("verifies %t after %d deletes and %d other requests", v.verifies, deletes, other)
			}
			if again := time.Until(v.until); !tt.verifies && (again > tt.again || again < tt.again-time.Minute/2) {
				t.Errorf("it is tried again in %s, want %s", again, tt.again)
			}
		})
	}
}

func TestTheTrialRunsOnceAndBesideTheWritesThatAskForIt(t *testing.T) {
	server := servers.Versitygw(t)
	s := open(t, server)
	defer s.Close()
	for range 20 {
		if _, err := storage.Set(t.Context(), s, "k", make([]byte, 100<<10), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.background.Wait()
	if v := s.trial.verdict.Load(); v == nil || !v.verifies {
		t.Errorf("the verdict is %+v", v)
	}
	if debris := server.Debris(t, s.target.bucket); len(debris) > 0 {
		t.Errorf("the trial left %v", debris)
	}
}

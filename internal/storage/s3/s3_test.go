package s3

import (
	"errors"
	"fmt"
	"io"
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

func TestS3OnVersitygwKeepsTheContract(t *testing.T) {
	server := servers.Versitygw(t)
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		return open(t, server, func(c *Config) { c.Prefix = "some/prefix/" })
	}, storagetest.Recorded(t, "s3 on versitygw", storagetest.Options{
		NoKeyUnderKey: true,
		Keys:          keysOnVersitygw,
		Reopen: func(t *testing.T, s storage.Storage) storage.Storage {
			bucket := s.(*Storage).target.bucket
			return open(t, server, func(c *Config) { c.Bucket, c.Prefix = bucket, "some/prefix/" })
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
	const ending = 86 // bytes, which say only that the content has ended
	for _, short := range []int64{1, 80, ending + 2, ending + 3, chunkSize, size / 2} {
		key, old := fmt.Sprintf("key-%d", short), "the old object"
		if _, err := storage.Set(t.Context(), s, key, []byte(old), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		cut := servers.CutAfter(t, strings.TrimPrefix(server.Endpoint, "http://"), chunkedLength(size, true)-short)
		through := open(t, server, func(c *Config) { c.Endpoint, c.Bucket = "http://"+cut, s.target.bucket })
		_, err := through.SetStream(t.Context(), key, storage.Stream(io.LimitReader(endlessA{}, size), size), storage.SetOptions{})
		through.Close()
		var failed *storage.Error
		if !errors.As(err, &failed) {
			t.Errorf("%d bytes short: got %v", short, err)
			continue
		}
		// With all of the content there, a server may do without the ending.
		// Then the write must say that its outcome is unknown.
		if short <= ending+2 && failed.Outcome == storage.OutcomeUnknown {
			continue
		}
		// The server goes on with what it has for a moment.
		for range 10 {
			time.Sleep(20 * time.Millisecond)
			if got, _, err := storage.Get(t.Context(), s, key); err != nil || string(got) != old {
				t.Errorf("%d bytes short: the object has %d bytes, %v", short, len(got), err)
				break
			}
		}
	}
}

package s3

import (
	"testing"

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
		return open(t, server, func(c *Config) { c.Prefix = "some/prefix-" })
	}, storagetest.Options{
		NoKeyUnderKey: true,
		Debris: func(t *testing.T, s storage.Storage) []string {
			return server.Debris(t, s.(*Storage).target.bucket)
		},
	})
}

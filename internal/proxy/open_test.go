package proxy

import (
	"testing"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

func openForTest(t *testing.T, b *muxconfig.Backend) storage.Storage {
	t.Helper()
	s, err := openStore(b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(s) })
	return s
}

func TestAWebDAVFolderIsOpenedAsItsUser(t *testing.T) {
	server := servers.GoWebDAV(t)
	b := &muxconfig.Backend{HTTP: &muxconfig.HTTP{
		URL: server.Folder(t), Flavor: muxconfig.FlavorWebDAV,
		Auth: muxconfig.HTTPAuth{Username: server.Username, Password: muxconfig.Secret(server.Password)},
	}}
	s := openForTest(t, b)
	if _, err := storage.Set(t.Context(), s, "key", []byte("content"), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	b.HTTP.Auth = muxconfig.HTTPAuth{Headers: map[string]muxconfig.Secret{"Authorization": "Basic dXNlcjpzZWNyZXQ="}}
	if data, _, err := storage.Get(t.Context(), openForTest(t, b), "key"); err != nil || string(data) != "content" {
		t.Errorf("as a header says: %q, %v", data, err)
	}
	b.HTTP.Auth = muxconfig.HTTPAuth{Token: "unknown"}
	err := openForTest(t, b).(storage.Checker).Check(t.Context())
	if code := storage.CodeOf(err); code != storage.CodeAccessDenied {
		t.Errorf("as the bearer of a token that the server does not know: %v", err)
	}
}

func TestOtherSettingsOfAnyTypeNeedAnotherClient(t *testing.T) {
	plain, err := settingsOf(&muxconfig.Backend{})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*muxconfig.Backend{
		"s3":     {S3: &muxconfig.S3{Auth: muxconfig.S3Auth{SecretAccessKey: "x"}}},
		"http":   {HTTP: &muxconfig.HTTP{Auth: muxconfig.HTTPAuth{Token: "x"}}},
		"file":   {File: &muxconfig.File{Path: "x"}},
		"memory": {Memory: &muxconfig.Memory{SizeLimit: 1}},
	} {
		if settings, err := settingsOf(b); err != nil || settings == plain {
			t.Errorf("settings of %s are not looked at (%v)", name, err)
		}
	}
}

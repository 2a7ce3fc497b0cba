package proxy

import (
	"testing"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/proxy/spool"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

func openForTest(t *testing.T, b *muxconfig.Backend) storage.Storage {
	t.Helper()
	s, err := maker{}.open(b)
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

func TestAZoneTakesBodiesThroughTheSpool(t *testing.T) {
	server := servers.StartBunny(t)
	spooled, err := spool.New(spool.Options{Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s, err := maker{scratch: spoolScratch{spooled}}.open(&muxconfig.Backend{Bunny: &muxconfig.Bunny{
		Zone: server.Zone(t), Endpoint: server.Endpoint, AccessKey: muxconfig.Secret(server.AccessKey),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeStore(s)
	if _, err := storage.Set(t.Context(), s, "key", make([]byte, 1<<20), storage.SetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := storage.Set(t.Context(), s, "key", make([]byte, 1<<20+1), storage.SetOptions{}); storage.CodeOf(err) != storage.CodeNoSpace {
		t.Errorf("a body that the spool has no room for: %v", err)
	}
	if used := spooled.Usage().Memory; used != 0 {
		t.Errorf("%d bytes of the spool are not free again", used)
	}
}

func TestStoresOfEveryTypeCanBeMade(t *testing.T) {
	for name, b := range map[string]*muxconfig.Backend{
		"swift": {Swift: &muxconfig.Swift{
			AuthURL: "https://keystone.example.com/v3", Container: "c", Auth: muxconfig.SwiftAuth{Username: "u", Password: "p"},
		}},
		"azure with a key": {Azure: &muxconfig.Azure{
			Endpoint: "https://a.blob.core.windows.net", Container: "c", Auth: muxconfig.AzureAuth{Type: muxconfig.AuthSecret, Account: "a", Key: "a2V5"},
		}},
		"azure with a signature": {Azure: &muxconfig.Azure{
			Endpoint: "https://a.blob.core.windows.net", Container: "c", Auth: muxconfig.AzureAuth{Type: muxconfig.AuthSecret, SASToken: "sv=1&sig=x"},
		}},
		"azure with the pod's identity": {Azure: &muxconfig.Azure{
			Endpoint: "https://a.blob.core.windows.net", Container: "c", Auth: muxconfig.AzureAuth{Type: muxconfig.AuthAmbient},
		}},
		"azure for everybody": {Azure: &muxconfig.Azure{
			Endpoint: "https://a.blob.core.windows.net", Container: "c", Auth: muxconfig.AzureAuth{Type: muxconfig.AuthAnonymous},
		}},
	} {
		t.Run(name, func(t *testing.T) { openForTest(t, b) })
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
		"bunny":  {Bunny: &muxconfig.Bunny{AccessKey: "x"}},
		"swift":  {Swift: &muxconfig.Swift{Auth: muxconfig.SwiftAuth{Password: "x"}}},
		"azure":  {Azure: &muxconfig.Azure{Auth: muxconfig.AzureAuth{Key: "x"}}},
		"file":   {File: &muxconfig.File{Path: "x"}},
		"memory": {Memory: &muxconfig.Memory{SizeLimit: 1}},
	} {
		if settings, err := settingsOf(b); err != nil || settings == plain {
			t.Errorf("settings of %s are not looked at (%v)", name, err)
		}
	}
}

package muxconfig

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

// validDocument is a two-level topology that breaks no rule.
func validDocument() *Document {
	key := Secret(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", 32))))
	retry := Retry{MaxAttempts: 3, InitialInterval: Duration(50 * time.Millisecond), MaxInterval: Duration(time.Second)}
	health := Health{Cooldown: Duration(time.Second), MaxCooldown: Duration(64 * time.Second), WhenAllDown: "Try"}
	return &Document{
		Schema:   SchemaVersion,
		Revision: 7,
		Owner:    Owner{Namespace: "shop", Name: "assets", UID: "mux-1"},
		Frontend: Frontend{
			Bucket: "assets", Auth: FrontendSigV4,
			KeyPairs: []KeyPair{{AccessKeyID: "AKIDFRONT", SecretAccessKey: "front-secret"}},
			TLS:      &KeyCert{Cert: "front-cert", Key: "front-key-secret"},
		},
		Admin: Admin{Token: "token-secret", TLS: KeyCert{Cert: "admin-cert", Key: "admin-key-secret"}},
		Keys:  Keys{Current: key},
		Root:  "assets",
		Muxes: []Mux{
			{
				Name: "assets", UID: "mux-1", Mode: ModeFailover, Keyspace: KeyspaceReplicated,
				Members:        []Member{{Name: "primary", Backend: "primary"}, {Name: "mirrors", Mux: "mirrors"}},
				BackendTimeout: Duration(30 * time.Second), Retry: retry, Health: health,
			},
			{
				Name: "mirrors", UID: "mux-2", Mode: ModeWeighted, Keyspace: KeyspaceReplicated,
				Members: []Member{
					{Name: "eu", Backend: "eu", Weight: new(int32(3))},
					{Name: "us", Backend: "primary", Weight: new(int32(0))},
				},
				BackendTimeout: Duration(30 * time.Second), Retry: retry, Health: health,
			},
		},
		Backends: []Backend{
			{Name: "eu", UID: "backend-2", Memory: &Memory{SizeLimit: 1 << 20}, MaxInFlight: 8},
			{
				Name: "primary", UID: "backend-1", MaxInFlight: 512, Timeout: Duration(5 * time.Second),
				HealthCheck: &HealthCheck{Interval: Duration(10 * time.Second), Timeout: Duration(2 * time.Second)},
				S3: &S3{
					Endpoint: "https://s3.example.com", Bucket: "assets", AddressingStyle: "Auto",
					Auth: S3Auth{Type: AuthSecret, AccessKeyID: "AKIDBACK", SecretAccessKey: "back-secret", SessionToken: "session-secret"},
				},
			},
		},
	}
}

// asHTTP makes b one of type http.
func asHTTP(b *Backend) *HTTP {
	if b.HTTP == nil {
		b.S3 = nil
		b.HTTP = &HTTP{URL: "https://dav.example.com/assets/", Flavor: FlavorWebDAV, Auth: HTTPAuth{Username: "user", Password: "dav-secret"}}
	}
	return b.HTTP
}

// asBunny makes b one of type bunny.
func asBunny(b *Backend) *Bunny {
	b.S3, b.Bunny = nil, &Bunny{Zone: "assets", Region: "uk", AccessKey: "zone-secret"}
	return b.Bunny
}

// asSwift makes b one of type swift.
func asSwift(b *Backend) *Swift {
	b.S3, b.Swift = nil, &Swift{
		AuthURL: "https://keystone.example.com/v3", Container: "assets", Auth: SwiftAuth{Username: "user", Password: "swift-secret"},
	}
	return b.Swift
}

// asAzure makes b one of type azure.
func asAzure(b *Backend) *Azure {
	b.S3, b.Azure = nil, &Azure{
		Endpoint: "https://account.blob.core.windows.net", Container: "assets",
		Auth: AzureAuth{Type: AuthSecret, Account: "account", Key: "YXp1cmUtc2VjcmV0"},
	}
	return b.Azure
}

func mustEncode(t testing.TB, d *Document) []byte {
	t.Helper()
	data, err := Encode(d)
	if err != nil {
		t.Fatalf("Encode: %v", err)
	}
	return data
}

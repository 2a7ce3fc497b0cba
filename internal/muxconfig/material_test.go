package muxconfig

import (
	"crypto/tls"
	"encoding/base64"
	"testing"
	"time"
)

func TestNewAdminIsValidNowAndDueAYearBeforeItsEnd(t *testing.T) {
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	admin, err := NewAdmin(now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair([]byte(admin.TLS.Cert), []byte(admin.TLS.Key.Reveal())); err != nil {
		t.Fatalf("the certificate does not fit its key: %v", err)
	}
	for _, c := range []struct {
		after time.Duration
		due   bool
	}{{0, false}, {adminLife - adminRenewal - time.Second, false}, {adminLife - adminRenewal, true}, {2 * adminLife, true}} {
		if got := admin.Due(now.Add(c.after)); got != c.due {
			t.Errorf("due after %s: got %t, want %t", c.after, got, c.due)
		}
	}
	if !(Admin{}).Due(now) {
		t.Error("an empty admin section must be due")
	}
}

func TestGeneratedMaterialHasItsFormAndIsNeverTheSame(t *testing.T) {
	raw, err := base64.StdEncoding.DecodeString(NewSealingKey().Reveal())
	if err != nil || len(raw) != 32 {
		t.Errorf("a sealing key has %d bytes, want 32 (%v)", len(raw), err)
	}
	a, b := NewKeyPair(), NewKeyPair()
	if len(a.AccessKeyID) != 20 || len(a.SecretAccessKey) != 40 {
		t.Errorf("key pair of %d and %d characters, want 20 and 40", len(a.AccessKeyID), len(a.SecretAccessKey))
	}
	if a == b {
		t.Error("two key pairs are the same")
	}
}

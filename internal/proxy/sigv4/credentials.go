package sigv4

import (
	"log/slog"
	"sync/atomic"
)

// Credentials are one key pair that clients may sign with.
type Credentials struct {
	AccessKeyID     string
	SecretAccessKey string
}

// String returns the access key id only.
func (c Credentials) String() string { return c.AccessKeyID }

// GoString returns the access key id only.
func (c Credentials) GoString() string { return c.AccessKeyID }

// LogValue implements slog.LogValuer with the access key id only.
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.AccessKeyID) }

// Keyring holds the key pairs that are valid at the same time. It is immutable
// but for a cache of derived keys, and safe for concurrent use.
type Keyring struct {
	keys map[string]*keyEntry
}

type keyEntry struct {
	secret string
	// derived is the signing key of the last scope this pair was used in. A
	// client stays in one region, so it is derived once a day.
	derived atomic.Pointer[derivedKey]
}

type derivedKey struct {
	date, region string
	key          [32]byte
}

// NewKeyring returns a keyring of pairs. Pairs without an id or a secret are
// left out, and of two with the same id the first counts.
func NewKeyring(pairs ...Credentials) *Keyring {
	k := &Keyring{keys: make(map[string]*keyEntry, len(pairs))}
	for _, pair := range pairs {
		if pair.AccessKeyID == "" || pair.SecretAccessKey == "" || k.keys[pair.AccessKeyID] != nil {
			continue
		}
		k.keys[pair.AccessKeyID] = &keyEntry{secret: pair.SecretAccessKey}
	}
	return k
}

// Len returns the number of pairs.
func (k *Keyring) Len() int {
	if k == nil {
		return 0
	}
	return len(k.keys)
}

// signingKey returns the key for a scope, or false if accessKeyID is unknown.
func (k *Keyring) signingKey(accessKeyID string, s scope) (*[32]byte, bool) {
	if k == nil {
		return nil, false
	}
	entry := k.keys[accessKeyID]
	if entry == nil {
		return nil, false
	}
	if d := entry.derived.Load(); d != nil && d.date == s.date && d.region == s.region {
		return &d.key, true
	}
	d := &derivedKey{date: s.date, region: s.region, key: deriveKey(entry.secret, s)}
	entry.derived.Store(d)
	return &d.key, true
}

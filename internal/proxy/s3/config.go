package s3

import (
	"time"

	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
	"github.com/suaveplan/storagemux/internal/storage"
)

// AuthMode says who may use the front.
type AuthMode int

const (
	// AuthSigV4 asks every request for a valid signature.
	AuthSigV4 AuthMode = iota
	// AuthNone takes every request and ignores signatures. Checksums are
	// verified all the same.
	AuthNone
)

// Config is what a Handler serves. It must not change after SetConfig.
type Config struct {
	// Storage holds the objects.
	Storage storage.Storage
	// Bucket is the one bucket the front has.
	Bucket string
	// Domains are the names of hosts, in lower case, below which the bucket is
	// a host of its own. Requests to other hosts are read in path style.
	Domains []string
	// Created is the bucket's creation date in ListBuckets; the zero time
	// stands for the start of the Handler.
	Created time.Time
	// Region is told to clients that ask for the bucket's location; empty
	// means us-east-1. Signatures are accepted for any region.
	Region string
	// Auth says whether requests must be signed.
	Auth AuthMode
	// Keys are the pairs that clients may sign with, all at once. Without
	// any, AuthSigV4 refuses everybody.
	Keys *sigv4.Keyring
	// ServeBackendHeader lets answers name the serving member.
	ServeBackendHeader bool
	// Limits bound what one client may ask for.
	Limits Limits
	// Sealer seals what clients carry back to any replica: continuation
	// tokens. Nil sends them in clear.
	Sealer Sealer
}

// Limits bound the work that clients can cause. A zero field means its
// default.
type Limits struct {
	// MaxInFlight is the most requests served at a time; more are answered
	// 503 SlowDown. The default is DefaultMaxInFlight.
	MaxInFlight int
	// MaxObjectBytes is the longest body of a PUT. The default, and the
	// most, is MaxObjectBytes.
	MaxObjectBytes int64
	// ClientIdle is how long a client may stand still in the middle of a
	// body. The default is DefaultClientIdle.
	ClientIdle time.Duration
}

const (
	// DefaultMaxInFlight is the bound on requests that run at a time.
	DefaultMaxInFlight = 2048
	// MaxObjectBytes is the longest body of one PUT that S3 knows, 5 GiB.
	MaxObjectBytes = 5 << 30
	// MaxMetadataBytes is the most that names and values of an object's
	// metadata may take together.
	MaxMetadataBytes = 2 << 10
)

// Sealer protects opaque values that clients hold for us against reading and
// change. The purpose binds a value to its use.
type Sealer interface {
	// Seal encrypts plain.
	Seal(purpose string, plain []byte) []byte
	// Open returns what was sealed for the same purpose, or an error.
	Open(purpose string, sealed []byte) ([]byte, error)
}

func (c *Config) region() string {
	if c.Region == "" {
		return "us-east-1"
	}
	return c.Region
}

func (c *Config) maxObjectBytes() int64 {
	if c.Limits.MaxObjectBytes <= 0 || c.Limits.MaxObjectBytes > MaxObjectBytes {
		return MaxObjectBytes
	}
	return c.Limits.MaxObjectBytes
}

func (c *Config) clientIdle() time.Duration {
	if c.Limits.ClientIdle <= 0 {
		return DefaultClientIdle
	}
	return c.Limits.ClientIdle
}

func (c *Config) maxInFlight() int64 {
	if c.Limits.MaxInFlight <= 0 {
		return DefaultMaxInFlight
	}
	return int64(c.Limits.MaxInFlight)
}

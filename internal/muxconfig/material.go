package muxconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base32"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Life of an admin certificate, and how long before its end it is due for
// renewal.
const (
	adminLife    = 5 * 365 * 24 * time.Hour
	adminRenewal = 365 * 24 * time.Hour
)

// NewAdmin makes a random bearer token and a self-signed certificate that is
// valid from an hour before now.
func NewAdmin(now time.Time) (Admin, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Admin{}, fmt.Errorf("make a key for the admin port: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Admin{}, fmt.Errorf("make a serial number for the admin certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "storagemux-proxy"},
		DNSNames:     []string{"storagemux-proxy"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(adminLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return Admin{}, fmt.Errorf("sign the admin certificate: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Admin{}, fmt.Errorf("encode the key of the admin port: %w", err)
	}
	return Admin{
		Token: Secret(base64.RawURLEncoding.EncodeToString(randomBytes(32))),
		TLS: KeyCert{
			Cert: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
			Key:  Secret(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		},
	}, nil
}

// Due reports whether a must be made anew at now: it is empty, cannot be read,
// or its certificate nears its end.
func (a Admin) Due(now time.Time) bool {
	block, _ := pem.Decode([]byte(a.TLS.Cert))
	if block == nil || a.Token == "" {
		return true
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	return err != nil || !now.Before(cert.NotAfter.Add(-adminRenewal))
}

// NewSealingKey makes a random key in the form of Keys.
func NewSealingKey() Secret {
	return Secret(base64.StdEncoding.EncodeToString(randomBytes(32)))
}

// generatedPrefix begins each access key id that NewKeyPair makes.
const generatedPrefix = "SMUX"

// NewKeyPair makes a random key pair in the usual form of AWS: 20 characters of
// access key id and 40 of secret.
func NewKeyPair() KeyPair {
	return KeyPair{
		AccessKeyID:     generatedPrefix + base32.StdEncoding.EncodeToString(randomBytes(10)),
		SecretAccessKey: Secret(base64.RawURLEncoding.EncodeToString(randomBytes(30))),
	}
}

func randomBytes(n int) []byte {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails: it ends the program instead
	return raw
}

// Generated reports whether p is from NewKeyPair.
func (p KeyPair) Generated() bool { return strings.HasPrefix(p.AccessKeyID, generatedPrefix) }

package wire

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// DefaultConnections is how many requests are expected at once where a store's
// configuration does not say.
const DefaultConnections = 512

// Transport returns the connections of one store. caBundle holds PEM
// certificates that are trusted instead of the system's; connections is how many
// idle ones are worth keeping, 0 is DefaultConnections. There is no timeout on
// an answer, which is the caller's to set, but there is on getting connected.
func Transport(caBundle []byte, connections int) (*Connections, error) {
	var roots *x509.CertPool
	if len(caBundle) > 0 {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM(caBundle) {
			return nil, storage.Errorf(storage.CodeRejected, "New", "the CA bundle holds no PEM certificate")
		}
	}
	if connections <= 0 {
		connections = DefaultConnections
	}
	return &Connections{maxIdle: connections, Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: connectTime, KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(0)},
		TLSHandshakeTimeout:   connectTime,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   connections,
		IdleConnTimeout:       idleTime,
		DisableCompression:    true,
		ReadBufferSize:        bufferSize,
		WriteBufferSize:       bufferSize,
	}}, nil
}

// MaxErrorBody is what is read of an error's body.
const MaxErrorBody = 64 << 10

// Drain reads the little that is left of an answer, so that its connection can
// be used again, and closes it.
func Drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, MaxErrorBody)
	_ = resp.Body.Close()
}

// AppendEscaped appends s percent-encoded to text: all but letters, digits and
// "-._~", and but "/" where keepSlash says so.
func AppendEscaped(text []byte, s string, keepSlash bool) []byte {
	const digits = "0123456789ABCDEF"
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == '~', c == '/' && keepSlash:
			text = append(text, c)
		default:
			text = append(text, '%', digits[c>>4], digits[c&15])
		}
	}
	return text
}

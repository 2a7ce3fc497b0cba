package proxy

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// gate holds what guards the ports: certificates and the admin token. All of
// it changes with the document, without a restart.
type gate struct {
	front atomic.Pointer[tls.Config] // nil while the front speaks plain HTTP
	admin atomic.Pointer[tls.Certificate]
	token atomic.Pointer[[sha256.Size]byte]
}

func (g *gate) set(front, admin *tls.Certificate, token string) {
	g.setFront(front)
	g.admin.Store(admin)
	sum := sha256.Sum256([]byte(token))
	g.token.Store(&sum)
}

// setFront keeps the settings while the certificate stays, and with them the
// keys with which clients resume sessions.
func (g *gate) setFront(cert *tls.Certificate) {
	if cert == nil {
		g.front.Store(nil)
		return
	}
	if now := g.front.Load(); now != nil && sameCertificate(&now.Certificates[0], cert) {
		return
	}
	g.front.Store(&tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{*cert},
		NextProtos:   []string{"h2", "http/1.1"},
	})
}

func sameCertificate(a, b *tls.Certificate) bool {
	if len(a.Certificate) != len(b.Certificate) {
		return false
	}
	for i := range a.Certificate {
		if string(a.Certificate[i]) != string(b.Certificate[i]) {
			return false
		}
	}
	return true
}

// frontListener gives each connection the protocol of the document that is in
// force when it is accepted.
type frontListener struct {
	net.Listener
	gate *gate
}

// Accept implements net.Listener.
func (l frontListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if config := l.gate.front.Load(); config != nil {
		return tls.Server(conn, config), nil
	}
	return conn, nil
}

// currentProtocol makes connections of a protocol that the document has
// replaced end with the request that they carry.
func (g *gate) currentProtocol(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (r.TLS != nil) != (g.front.Load() != nil) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// adminTLS are the settings of the admin port. Before the first document no
// handshake succeeds.
func (g *gate) adminTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if cert := g.admin.Load(); cert != nil {
				return cert, nil
			}
			return nil, errors.New("no document yet, and so no certificate")
		},
	}
}

// authorized asks callers of the admin port for the token. Digests are
// compared, so that the time tells nothing about the token, its length included.
func (g *gate) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		sum, want := sha256.Sum256([]byte(shown)), g.token.Load()
		if want == nil || !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(sum[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a valid bearer token must be shown", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

package http

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/wire"
)

// Guard says whom a store may be in touch with whose URL was not chosen by
// whoever runs it. With one, redirects are followed to hosts that it allows, and
// no proxy of the environment is used, since that would dial in its place.
type Guard struct {
	// Hosts are names or addresses, or *.DOMAIN for every host below a domain.
	Hosts []string
	// AllowPrivate lets the addresses that are dialled be other than public
	// ones.
	AllowPrivate bool
}

// maxRedirects is how many redirects of one request are followed.
const maxRedirects = 5

// allows returns an error unless u may be asked.
func (g *Guard) allows(u *url.URL) error {
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if u.Scheme != "http" && u.Scheme != "https" {
		return &refusedError{"the scheme is neither http nor https"}
	}
	for _, allowed := range g.Hosts {
		allowed = strings.ToLower(allowed)
		if domain, wild := strings.CutPrefix(allowed, "*."); host == allowed || wild && strings.HasSuffix(host, "."+domain) {
			return nil
		}
	}
	return &refusedError{fmt.Sprintf("the host %s is not one that may be contacted", host)}
}

// protect makes transport keep to g on the address that is dialled.
func (g *Guard) protect(transport *http.Transport) {
	transport.Proxy = nil
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	if !g.AllowPrivate {
		dialer.Control = func(_, address string, _ syscall.RawConn) error { return publicAddress(address) }
	}
	transport.DialContext = dialer.DialContext
}

// publicAddress returns an error unless address, with its port, is public.
func publicAddress(address string) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !isPublic(at.Addr()) {
		return &refusedError{"the address is not a public one"}
	}
	return nil
}

// special are the ranges that are not public besides those that netip knows.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/32"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("fec0::/10"),
}

// The ranges of IPv6 in which an address of IPv4 is, and where in it.
var (
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
	sixToIV = netip.MustParsePrefix("2002::/16")
)

func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	bytes := ip.As16()
	switch {
	case nat64.Contains(ip):
		return isPublic(netip.AddrFrom4([4]byte(bytes[12:16])))
	case sixToIV.Contains(ip):
		return isPublic(netip.AddrFrom4([4]byte(bytes[2:6])))
	case !ip.IsGlobalUnicast() || ip.IsPrivate():
		return false
	}
	for _, prefix := range special {
		if prefix.Contains(ip) {
			return false
		}
	}
	return true
}

// refusedError is why a Guard does not let a request go on.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return e.reason }

// refused returns the error of a request that a Guard has stopped, or nil.
func refused(op, key string, err error) error {
	if e, ok := errors.AsType[*refusedError](err); ok {
		return storage.Errorf(storage.CodeAccessDenied, op, "%s: %q", e.reason, key)
	}
	return nil
}

// follow goes on where resp redirects req to, as far as the guard allows.
func (s *Storage) follow(req *http.Request, resp *http.Response) (*http.Response, error) {
	for range maxRedirects {
		to := s.redirected(req, resp)
		if to == nil {
			return resp, nil
		}
		wire.Drain(resp)
		if err := s.guard.allows(to); err != nil {
			return nil, err
		}
		if req.URL.Scheme == "https" && to.Scheme != "https" {
			return nil, &refusedError{"a redirect leads from https to http"}
		}
		next := req.Clone(req.Context())
		next.URL, next.Host = to, to.Host
		if !strings.EqualFold(to.Host, s.base.Host) {
			for name := range s.auth {
				next.Header.Del(name)
			}
		}
		var err error
		if resp, err = s.transport.RoundTrip(next); err != nil {
			return nil, err
		}
		req = next
	}
	if s.redirected(req, resp) == nil {
		return resp, nil
	}
	wire.Drain(resp)
	return nil, &refusedError{fmt.Sprintf("it was redirected more than %d times", maxRedirects)}
}

// redirected returns where resp leads, nil if it is to be taken as it is: it is no
// redirect, or one from a folder to its name with a slash.
func (s *Storage) redirected(req *http.Request, resp *http.Response) *url.URL {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	if s.guard == nil || req.Method != http.MethodGet && req.Method != http.MethodHead {
		return nil
	}
	to, err := resp.Location()
	if err != nil || to.Host == req.URL.Host && to.Path == req.URL.Path+"/" {
		return nil
	}
	return to
}

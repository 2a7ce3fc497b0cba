package http

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
)

func TestAddressesThatAreNotPublicAreKnown(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true, "64:ff9b::5db8:d822": true, "2002:5db8:d822::1": true,
		"127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false,
		"100.64.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false, "255.255.255.255": false, "240.0.0.1": false,
		"198.18.0.1": false, "192.0.2.1": false, "::1": false, "::": false, "fe80::1": false, "fd00::1": false, "ff02::1": false,
		"::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, "64:ff9b::a00:1": false, "2002:a00:1::": false, "::10.0.0.1": false,
		"fe80::1%eth0": false, "2001:db8::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: public is %v", address, got)
		}
	}
}

func TestGuardKnowsTheHostsItAllows(t *testing.T) {
	g := &Guard{Hosts: []string{"www.Example.com", "*.cdn.example.com", "192.0.2.7"}}
	for text, want := range map[string]bool{
		"https://www.example.com/x": true, "http://WWW.EXAMPLE.COM:8080/": true, "https://www.example.com./": true,
		"https://a.cdn.example.com/": true, "https://a.b.cdn.example.com/": true, "http://192.0.2.7/": true,
		"https://cdn.example.com/": false, "https://evilcdn.example.com/": false, "https://example.com/": false,
		"https://www.example.com.evil.test/": false, "ftp://www.example.com/": false, "https://www.example.com@evil.test/": false,
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.allows(u) == nil; got != want {
			t.Errorf("%s: allowed is %v", text, got)
		}
	}
	if _, err := New(Config{URL: "https://other.test/", Flavor: Plain, Guard: g}); storage.CodeOf(err) != storage.CodeAccessDenied {
		t.Errorf("got %v", err)
	}
}

func TestGuardChecksTheAddressThatIsDialledAndNotTheName(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x") }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for private, want := range map[bool]storage.Code{false: storage.CodeAccessDenied, true: ""} {
		for _, host := range []string{"127.0.0.1", "localhost"} {
			s, err := New(Config{URL: "http://" + host + ":" + port + "/", Flavor: Plain, Guard: &Guard{Hosts: []string{host}, AllowPrivate: private}})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = storage.Get(t.Context(), s, "k")
			if storage.CodeOf(err) != want {
				t.Errorf("%s with private addresses allowed %v: got %v", host, private, err)
			}
			_ = s.Close()
		}
	}
}

func TestGuardFollowsRedirectsOnlyToHostsItAllows(t *testing.T) {
	var auth string
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth = r.Header.Get("Authorization")
		w.Header().Set("Last-Modified", "Mon, 04 May 2026 10:00:00 GMT")
		_, _ = io.WriteString(w, "moved to "+r.URL.Path)
	}))
	defer target.Close()
	_, port, _ := net.SplitHostPort(target.Listener.Addr().String())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/allowed":
			http.Redirect(w, r, "http://localhost:"+port+"/there", http.StatusFound)
		case "/refused":
			http.Redirect(w, r, "http://0.0.0.0:"+port+"/there", http.StatusFound)
		case "/scheme":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/folder":
			http.Redirect(w, r, "/folder/", http.StatusMovedPermanently)
		default:
			http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	open := func(g *Guard) *Storage {
		s, err := New(Config{URL: server.URL, Flavor: Plain, Guard: g, Auth: Auth{Token: "t0ken"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := open(&Guard{Hosts: []string{"127.0.0.1", "localhost"}, AllowPrivate: true})
	data, info, err := storage.Get(t.Context(), s, "allowed")
	if err != nil || string(data) != "moved to /there" || info.Key != "allowed" || auth != "" {
		t.Fatalf("got %q, %+v, %v, and the token went along: %q", data, info, err, auth)
	}
	if info, err := s.Stat(t.Context(), "allowed", storage.StatOptions{}); err != nil || info.Size != int64(len(data)) {
		t.Fatalf("got %+v, %v", info, err)
	}
	for key, want := range map[string]storage.Code{
		"refused": storage.CodeAccessDenied, "scheme": storage.CodeAccessDenied, "endless": storage.CodeAccessDenied, "folder": storage.CodeKeyNotFound,
	} {
		if _, _, err := storage.Get(t.Context(), s, key); storage.CodeOf(err) != want {
			t.Errorf("%s: got %v", key, err)
		}
	}
	if _, _, err := storage.Get(t.Context(), open(nil), "allowed"); err == nil {
		t.Error("a redirect was followed that nothing guards")
	}
}

func TestQueryGoesWithEachRequestAndIntoNoError(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.RawQuery
		http.Error(w, "no", http.StatusForbidden)
	}))
	s, err := New(Config{URL: server.URL, Flavor: Plain, Query: "sig=s3cr3t"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, _, err = storage.Get(t.Context(), s, "k")
	if err == nil || got != "sig=s3cr3t" || strings.Contains(err.Error(), "s3cr3t") {
		t.Fatalf("sent %q, got %v", got, err)
	}
	server.Close()
	if _, _, err = storage.Get(t.Context(), s, "k"); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Fatalf("got %v", err)
	}
}

package servers

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Swift is OpenStack Swift: proxy, account, container and object server on one
// device, with tempauth.
type Swift struct {
	AuthURL, Username, Password string
	dir                         string
	containers                  atomic.Int32
}

const swiftProxyConfig = `
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = %[1]s
swift_dir = %[2]s
workers = 0
user = %[3]s
log_level = ERROR
client_timeout = 20
[pipeline:main]
pipeline = catch_errors cache tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = %[4]s
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
`

const swiftServerConfig = `
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = %[1]s
swift_dir = %[2]s
devices = %[2]s/node
mount_check = false
workers = 0
user = %[3]s
log_level = ERROR
disable_fallocate = true
[pipeline:main]
pipeline = %[4]s-server
[app:%[4]s-server]
use = egg:swift#%[4]s
`

// StartSwift runs Swift as Debian packages it (swift-proxy, swift-account,
// swift-container, swift-object, memcached).
func StartSwift(t testing.TB) *Swift {
	t.Helper()
	for _, name := range []string{"swift-ring-builder", "swift-proxy-server", "memcached"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%s is not installed (Debian's packages swift-proxy, swift-account, swift-container, swift-object and memcached)", name)
		}
	}
	s := &Swift{Username: "test:tester", Password: "testing", dir: tempDir(t)}
	if err := os.MkdirAll(filepath.Join(s.dir, "node", "d1"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write(t, "swift.conf", "[swift-hash]\nswift_hash_path_suffix = storagemux\nswift_hash_path_prefix = storagemux\n")
	user := os.Getenv("USER")
	if os.Getuid() == 0 || user == "" {
		user = "root"
	}
	cache := freeAddress(t)
	host, port, _ := net.SplitHostPort(cache)
	start(t, exec.Command("memcached", "-l", host, "-p", port, "-u", user, "-m", "16"), cache)
	var all sync.WaitGroup
	for _, kind := range []string{"account", "container", "object"} {
		address := freeAddress(t)
		_, port, _ := net.SplitHostPort(address)
		s.ring(t, kind, address)
		s.write(t, kind+".conf", fmt.Sprintf(swiftServerConfig, port, s.dir, user, kind))
		all.Go(func() { start(t, s.server(kind), address) })
	}
	proxy := freeAddress(t)
	_, port, _ = net.SplitHostPort(proxy)
	s.write(t, "proxy.conf", fmt.Sprintf(swiftProxyConfig, port, s.dir, user, cache))
	all.Go(func() { start(t, s.server("proxy"), proxy) })
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	s.AuthURL = "http://" + proxy + "/auth/v1.0"
	return s
}

func (s *Swift) write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ring says where the one device of a kind of server is.
func (s *Swift) ring(t testing.TB, kind, address string) {
	t.Helper()
	builder := filepath.Join(s.dir, kind+".builder")
	for _, args := range [][]string{{"create", "4", "1", "0"}, {"add", "r1z1-" + address + "/d1", "1"}, {"rebalance"}} {
		cmd := exec.Command("swift-ring-builder", append([]string{builder}, args...)...)
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, output)
		}
	}
}

func (s *Swift) server(kind string) *exec.Cmd {
	cmd := exec.Command("swift-"+kind+"-server", filepath.Join(s.dir, kind+".conf"))
	cmd.Env = []string{"HOME=" + s.dir, "PATH=" + os.Getenv("PATH")}
	return cmd
}

// Container makes an empty container and returns its name.
func (s *Swift) Container(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("container %d", s.containers.Add(1))
	token, url := s.token(t)
	req, err := http.NewRequest(http.MethodPut, url+"/"+strings.ReplaceAll(name, " ", "%20"), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", token)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("making a container: %s", resp.Status)
	}
	return name
}

func (s *Swift) token(t testing.TB) (token, url string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, s.AuthURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-User", s.Username)
	req.Header.Set("X-Auth-Key", s.Password)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	return resp.Header.Get("X-Auth-Token"), resp.Header.Get("X-Storage-Url")
}

// Debris lists the temporary files of the object server.
func (s *Swift) Debris(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, "node", "d1", "tmp"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	return found
}

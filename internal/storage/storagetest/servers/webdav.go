package servers

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/net/webdav"
)

// WebDAV is a WebDAV server.
type WebDAV struct {
	// URL is that of the folder in which Folder makes others.
	URL                string
	Username, Password string
	dir                string
	folders            atomic.Int32
}

// GoWebDAV runs the WebDAV server of golang.org/x/net in this process.
func GoWebDAV(t testing.TB) *WebDAV {
	t.Helper()
	d := &WebDAV{Username: "user", Password: "secret", dir: tempDir(t)}
	handler := &webdav.Handler{FileSystem: webdav.Dir(d.dir), LockSystem: webdav.NewMemLS()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != d.Username || password != d.Password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	d.URL = server.URL + "/"
	return d
}

// Folder makes an empty folder and returns its URL.
func (d *WebDAV) Folder(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("folder %d", d.folders.Add(1))
	if err := os.Mkdir(filepath.Join(d.dir, name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(d.dir, name), 0o777); err != nil {
		t.Fatal(err)
	}
	return d.URL + fmt.Sprintf("folder%%20%d/", d.folders.Load())
}

// Files returns the path of the files in the folder of a URL that Folder gave.
func (d *WebDAV) Files(url string) string {
	var n int
	_, _ = fmt.Sscanf(url[len(d.URL):], "folder%%20%d/", &n)
	return filepath.Join(d.dir, fmt.Sprintf("folder %d", n))
}

const nginxConfig = `
daemon off;
master_process off;
%s
pid %[2]s/nginx.pid;
error_log stderr;
events { worker_connections 1024; }
http {
	access_log off;
	types { text/plain txt; }
	default_type application/octet-stream;
	client_body_temp_path %[2]s/body;
	proxy_temp_path %[2]s/proxy;
	fastcgi_temp_path %[2]s/fastcgi;
	uwsgi_temp_path %[2]s/uwsgi;
	scgi_temp_path %[2]s/scgi;
	client_max_body_size 0;
	server {
		listen %[3]s;
		root %[2]s/root;
		merge_slashes off;
		location / {
			%[4]s
		}
	}
}
`

// Nginx runs nginx with its dav-ext module, or without, for reading only.
func Nginx(t testing.TB, dav bool) *WebDAV {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		t.Fatal("nginx is not installed (Debian's packages nginx-light and libnginx-mod-http-dav-ext)")
	}
	base := tempDir(t)
	d := &WebDAV{dir: filepath.Join(base, "root")}
	if err := os.Mkdir(d.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	d.URL = "http://" + address + "/"
	modules, location := "", ""
	if dav {
		modules = "load_module /usr/lib/nginx/modules/ngx_http_dav_ext_module.so;"
		location = "dav_methods PUT DELETE MKCOL COPY MOVE; dav_ext_methods PROPFIND OPTIONS; create_full_put_path off;"
	}
	config := filepath.Join(base, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nginxConfig, modules, base, address, location), 0o644); err != nil {
		t.Fatal(err)
	}
	start(t, exec.Command(path, "-e", "stderr", "-c", config), address)
	return d
}

const lighttpdConfig = `
server.modules = ("mod_webdav")
server.document-root = "%[1]s/root"
server.bind = "%[2]s"
server.port = %[3]s
server.errorlog = "%[1]s/error.log"
server.upload-dirs = ("%[1]s/body")
server.max-request-size = 0
server.stream-request-body = 1
mimetype.assign = ("" => "application/octet-stream")
webdav.activate = "enable"
webdav.is-readonly = "disable"
static-file.disable-pathinfo = "enable"
`

// Lighttpd runs lighttpd with its mod_webdav.
func Lighttpd(t testing.TB) *WebDAV {
	t.Helper()
	path, err := exec.LookPath("lighttpd")
	if err != nil {
		t.Fatal("lighttpd is not installed (Debian's packages lighttpd and lighttpd-mod-webdav)")
	}
	base := tempDir(t)
	d := &WebDAV{dir: filepath.Join(base, "root")}
	for _, dir := range []string{d.dir, filepath.Join(base, "body")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	host, port, _ := net.SplitHostPort(address)
	d.URL = "http://" + address + "/"
	config := filepath.Join(base, "lighttpd.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, lighttpdConfig, base, host, port), 0o644); err != nil {
		t.Fatal(err)
	}
	start(t, exec.Command(path, "-D", "-f", config), address)
	return d
}

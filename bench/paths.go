package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// path is one way to an object: the processes between the client and the origin,
// and where the first of them listens.
type path struct {
	name string
	// address is where clients connect; host is what they sign for, which is
	// the origin's for proxies that pass requests on as they are.
	address, host string
	processes     []*process
	// admin is the admin address of a mux.
	admin string
	// peer: it is somebody else's program, to compare with.
	peer bool
	// note says what it is, for the report.
	note string
}

// origin starts a store: versitygw over a folder in memory, or the light one.
func (b *bench) origin(kind string) (*path, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p := &path{name: "direct", address: address, host: address}
	var one *process
	switch kind {
	case "versitygw":
		root := filepath.Join(b.shm, strings.ReplaceAll(address, ":", "-"))
		if err := os.MkdirAll(filepath.Join(root, bucket), 0o755); err != nil {
			return nil, err
		}
		p.note = "versitygw, posix over tmpfs"
		one, err = b.start(address, "origin-"+address, nil, b.versitygw, "--port", address, "--access", accessKey, "--secret", secretKey, "posix", root)
	default:
		p.note = "a Go server that answers from memory and discards what it gets"
		one, err = b.start(address, "origin-"+address, nil, b.self, "-origin", kind, "-address", address)
	}
	p.processes = []*process{one}
	return p, err
}

// nginx and haproxy are plain reverse proxies, set up as their manuals advise.
func (b *bench) nginx(origin *path) (*path, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, "nginx")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	conf := fmt.Sprintf(`worker_processes 2;
daemon off;
pid %[1]s/pid;
error_log %[1]s/error.log crit;
worker_rlimit_nofile 8192;
events { worker_connections 4096; multi_accept on; }
http {
  access_log off;
  sendfile on; tcp_nodelay on;
  keepalive_requests 1000000;
  client_max_body_size 0;
  client_body_buffer_size 128k;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  upstream origin { server %[2]s; keepalive 256; keepalive_requests 1000000; }
  server {
    listen %[3]s backlog=4096;
    location / {
      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_request_buffering off;
      proxy_buffering on;
      proxy_buffer_size 64k;
      proxy_buffers 16 64k;
      proxy_busy_buffers_size 128k;
      proxy_max_temp_file_size 0;
    }
  }
}
`, dir, origin.address, address)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		return nil, err
	}
	one, err := b.start(address, "nginx", nil, "nginx", "-c", file, "-p", dir)
	return &path{name: "nginx", address: address, host: origin.host, processes: []*process{one}, peer: true, note: "plain reverse proxy, keep-alive pool, 64 KiB buffers"}, err
}

func (b *bench) haproxy(origin *path) (*path, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	conf := fmt.Sprintf(`global
  nbthread 2
  maxconn 8192
  tune.bufsize 65536
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  option http-keep-alive
  http-reuse always
frontend front
  bind %s
  default_backend origin
backend origin
  server one %s pool-max-conn 256
`, address, origin.address)
	file := filepath.Join(b.dir, "haproxy.cfg")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		return nil, err
	}
	one, err := b.start(address, "haproxy", nil, "haproxy", "-db", "-f", file)
	return &path{name: "haproxy", address: address, host: origin.host, processes: []*process{one}, peer: true, note: "plain reverse proxy, keep-alive pool, 64 KiB buffers"}, err
}

// gateway is versitygw as a proxy of an S3 store, which signs anew.
func (b *bench) gateway(origin *path) (*path, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	one, err := b.start(address, "versitygw-s3", nil, b.versitygw, "--port", address, "--access", accessKey, "--secret", secretKey,
		"s3", "--access", accessKey, "--secret", secretKey, "--endpoint", "http://"+origin.address, "--region", region, "--use-path-style")
	return &path{name: "versitygw s3", address: address, host: address, processes: []*process{one}, peer: true, note: "versitygw in its S3-proxy mode"}, err
}

// rclone serves S3 over S3 remotes; with several it writes to all of them.
func (b *bench) rclone(origins ...*path) (*path, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	var env, upstreams []string
	for i, o := range origins {
		p := fmt.Sprintf("RCLONE_CONFIG_O%d_", i)
		env = append(env, p+"TYPE=s3", p+"PROVIDER=Other", p+"ENDPOINT=http://"+o.address, p+"ACCESS_KEY_ID="+accessKey,
			p+"SECRET_ACCESS_KEY="+secretKey, p+"REGION="+region, p+"NO_CHECK_BUCKET=true")
		upstreams = append(upstreams, fmt.Sprintf("o%d:", i))
	}
	remote, name := "o0:", "rclone"
	if len(origins) > 1 {
		name = fmt.Sprintf("rclone union of %d", len(origins))
		env = append(env, "RCLONE_CONFIG_U_TYPE=union", "RCLONE_CONFIG_U_UPSTREAMS="+strings.Join(upstreams, " "),
			"RCLONE_CONFIG_U_CREATE_POLICY=all", "RCLONE_CONFIG_U_ACTION_POLICY=all")
		remote = "u:"
	}
	env = append(env, "RCLONE_CONFIG="+os.DevNull)
	one, err := b.start(address, strings.ReplaceAll(name, " ", "-"), env, b.rcloneBinary, "serve", "s3", "--addr", address,
		"--auth-key", accessKey+","+secretKey, "--vfs-cache-mode", "off", remote)
	return &path{name: name, address: address, host: address, processes: []*process{one}, peer: true, note: "rclone serve s3 over S3 remotes"}, err
}

// mux is `storagemux serve` over the origins.
func (b *bench) mux(name, mode, keyspace string, origins ...*path) (*path, error) {
	s3, err := freeAddress()
	if err != nil {
		return nil, err
	}
	admin, err := freeAddress()
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {AWS_ACCESS_KEY_ID: %s, AWS_SECRET_ACCESS_KEY: %s}\n", accessKey, secretKey)
	var members []string
	for i, o := range origins {
		fmt.Fprintf(&text, "---\napiVersion: storagemux.dev/v1alpha1\nkind: StorageBackend\nmetadata: {name: store-%d}\n"+
			"spec: {timeout: 2s, s3: {endpoint: 'http://%s', bucket: %s, auth: {type: Secret, secretRef: {name: keys}}}}\n", i, o.address, bucket)
		weight := ""
		if mode == "weighted" {
			weight = ", weight: 1"
		}
		members = append(members, fmt.Sprintf("{name: store-%d%s}", i, weight))
	}
	fmt.Fprintf(&text, "---\napiVersion: storagemux.dev/v1alpha1\nkind: StorageMux\nmetadata: {name: mux}\nspec:\n  mode: %s\n  keyspace: %s\n"+
		"  backends: [%s]\n  frontend: {bucket: %s, auth: {type: SigV4, secretRefs: [{name: keys}]}}\n", mode, keyspace, strings.Join(members, ", "), bucket)
	dir := filepath.Join(b.dir, "mux-"+strings.ReplaceAll(name, " ", "-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "manifests.yaml"), []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	one, err := b.start(s3, filepath.Base(dir), nil, b.storagemux, "serve", "--manifests", dir, "--s3-address", s3, "--admin-address", admin, "--log-level", "error", fmt.Sprintf("--pprof=%t", b.profiles != ""))
	return &path{name: name, address: s3, host: s3, admin: admin, processes: []*process{one}, note: "storagemux serve, mode " + mode}, err
}

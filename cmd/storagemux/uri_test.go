package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// uriRun runs storagemux uri with args.
func uriRun(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = dispatch(t.Context(), commands, append([]string{"uri"}, args...), stdio{out: &out, err: &err})
	return code, out.String(), err.String()
}

func TestURICommandsBuildAndParseURIs(t *testing.T) {
	const built = "fallback://?u=backend%3A%2F%2Fprimary%2F&u=https%3A%2F%2Fwww.example.com%2Fassets%2F"
	const outer = "fallback://?u=" + "fallback%3A%2F%2F%3Fu%3Da%253Ab" + "&u=c%3Ad"
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"build":               {[]string{"build", "backend://primary/", "https://www.example.com/assets/"}, 0, built + "\n", ""},
		"build nothing":       {[]string{"build"}, 2, "", "NO_CANDIDATES"},
		"build what is none":  {[]string{"build", "/etc/hosts"}, 2, "", "INVALID_URI"},
		"parse":               {[]string{"parse", built}, 0, "backend://primary/\nhttps://www.example.com/assets/\n", ""},
		"parse a nested one":  {[]string{"parse", outer}, 0, "fallback://\n  a:b\nc:d\n", ""},
		"parse what is none":  {[]string{"parse", "https://u:s3cr3t@host/?s3cr3t"}, 2, "", "begin with fallback://"},
		"parse two":           {[]string{"parse", built, built}, 2, "", "takes 1 argument"},
		"no command":          {nil, 2, "", "build, parse, get and stat"},
		"an unknown command":  {[]string{"put"}, 2, "", `no uri command "put"`},
		"help":                {[]string{"--help"}, 0, "storagemux uri build URI...", ""},
		"help of get":         {[]string{"get", "--help"}, 0, "-allowed-hosts", ""},
		"an unknown policy":   {[]string{"get", "--walk=zigzag", built}, 2, "", "policy.walk"},
		"a resource":          {[]string{"get", built}, 2, "", "backend://primary/ names a resource"},
		"an unknown scheme":   {[]string{"stat", "fallback://?u=gopher%3A%2F%2Fx%2F"}, 2, "", `the scheme "gopher"`},
		"a private address":   {[]string{"get", "fallback://?u=http%3A%2F%2F127.0.0.1%3A1%2Fx"}, 1, "", "not a public one"},
		"another host":        {[]string{"get", "--allowed-hosts=a.test,*.b.test", "fallback://?u=http%3A%2F%2Fc.test%2Fx"}, 1, "", "c.test is not one that may be contacted"},
		"a file that is none": {[]string{"get", "fallback://?u=file%3A%2F%2F%2Fnowhere%2Fat%2Fall"}, 1, "", "ALL_CANDIDATES_FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := uriRun(t, test.args...)
			if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) || strings.Contains(stderr, "s3cr3t") {
				t.Fatalf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

func TestURICommandsReadTheFirstCandidateThatAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user != "user" || password != "s3cr3t" || r.URL.RawQuery != "sig=s3cr3t" || r.URL.Path != "/deep/object one" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		http.ServeContent(w, r, "", time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC), strings.NewReader("from the web"))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	web := strings.Replace(server.URL, "http://", "http://user:s3cr3t@", 1) + "/deep/object%20one?sig=s3cr3t"
	build := func(candidates ...string) string {
		code, out, _ := uriRun(t, append([]string{"build"}, candidates...)...)
		if code != 0 {
			t.Fatal("the URI cannot be built")
		}
		return strings.TrimSpace(out)
	}
	text := build("file://"+file+".missing", web, "file://"+file)
	if code, out, errs := uriRun(t, "get", "--allow-private-addresses", text); code != 0 || out != "from the web" {
		t.Fatalf("exit code %d, %q, %s", code, out, errs)
	}
	code, out, errs := uriRun(t, "stat", "--allow-private-addresses", text)
	if code != 0 || !strings.Contains(out, "size: 12\n") || !strings.Contains(out, "last-modified: 2026-05-04T10:00:00Z\n") || strings.Contains(out, "s3cr3t") {
		t.Fatalf("exit code %d, %q, %s", code, out, errs)
	}
	server.Close()
	if code, out, errs := uriRun(t, "get", "--allow-private-addresses", "--timeout=5s", text); code != 0 || out != "from a file" {
		t.Fatalf("exit code %d, %q, %s", code, out, errs)
	}
	code, _, errs = uriRun(t, "get", "--allow-private-addresses", build(web))
	if code != 1 || strings.Contains(errs, "s3cr3t") {
		t.Fatalf("exit code %d, %s", code, errs)
	}
}

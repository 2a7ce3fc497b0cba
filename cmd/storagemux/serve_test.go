package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBadInputOfServeAndProxyExitsWithTwoAndOneLine(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("apiVersion: storagemux.dev/v1alpha1\nkind: StorageMux\nmetadata: {name: assets}\nspec: {mode: random}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no manifests", []string{"serve"}, "--manifests must be set"},
		{"manifests that are not there", []string{"serve", "--manifests", dir + "/gone"}, "gone: stat: no such file or directory"},
		{"an invalid manifest", []string{"serve", "--manifests", dir}, bad + ": StorageMux assets: spec"},
		{"an admin port for everybody", []string{"serve", "--manifests", dir, "--admin-address", ":9090"}, "--admin-address: must be HOST:PORT of this machine's loopback"},
		{"no number of bytes", []string{"serve", "--manifests", dir, "--spool-memory", "much"}, "must be a number of bytes such as 64Mi"},
		{"a negative number of bytes", []string{"proxy", "--spool-disk", "-1"}, "must be a number of bytes such as 64Mi"},
		{"a proxy without a Secret", []string{"proxy", "--namespace", "shop"}, "--namespace and --secret-name must be set"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := dispatch(t.Context(), commands, tt.args, stdio{out: &out, err: &errs}); code != exitUsage {
				t.Errorf("it exits with %d", code)
			}
			line := strings.TrimSpace(errs.String())
			if strings.Contains(line, "\n") || !strings.Contains(line, tt.want) || out.Len() > 0 {
				t.Errorf("it says %q and %q, want one line with %q", line, out.String(), tt.want)
			}
		})
	}
}

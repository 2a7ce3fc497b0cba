package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func sample(t *testing.T) recipe {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"server": "binary", "roots.pem": "roots"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return recipe{
		binary: filepath.Join(dir, "server"), platform: "linux/arm64", user: "65532:65533",
		args: []string{"serve"}, env: []string{"A=b"}, labels: []string{"k=v=w"},
		files: []string{filepath.Join(dir, "roots.pem") + ":/etc/ssl/roots.pem"}, dirs: []string{"/var/spool"},
	}
}

func TestSameInputsGiveTheSameImage(t *testing.T) {
	var digests []v1.Hash
	for range 2 {
		image, err := build(sample(t))
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("got two digests, %s and %s", digests[0], digests[1])
	}
}

func TestTarballHoldsTheImageUnderItsName(t *testing.T) {
	r := sample(t)
	output := filepath.Join(t.TempDir(), "image.tar")
	err := run([]string{
		"--binary", r.binary, "--name", "localhost/server:v1", "--output", output, "--platform", r.platform, "--user", r.user,
		"--arg", "serve", "--env", "A=b", "--label", "k=v=w", "--file", r.files[0], "--dir", "/var/spool",
	})
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(output, nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := file.OS + "/" + file.Architecture; got != "linux/arm64" {
		t.Errorf("platform: got %s", got)
	}
	config := file.Config
	if got := fmt.Sprintln(config.Entrypoint, config.Cmd, config.Env, config.Labels, config.User); got != "[/server] [serve] [A=b] map[k:v=w] 65532:65533\n" {
		t.Errorf("config: got %s", got)
	}
	want := []string{
		"etc/ 0:0 755", "etc/ssl/ 0:0 755", "etc/ssl/roots.pem 0:0 644 roots", "server 0:0 755 binary",
		"var/ 0:0 755", "var/spool/ 65532:65533 755",
	}
	if got := listed(t, image); !slices.Equal(got, want) {
		t.Errorf("layer:\ngot  %q\nwant %q", got, want)
	}
}

func listed(t *testing.T, image v1.Image) []string {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("got %d layers, %v", len(layers), err)
	}
	stream, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var lines []string
	for archive := tar.NewReader(stream); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %d:%d %o %s", header.Name, header.Uid, header.Gid, header.Mode, content)))
	}
}

func TestBadFlagsAreRefusedByName(t *testing.T) {
	r := sample(t)
	cases := map[string][]string{
		"--output":   {"--binary", r.binary},
		"--binary":   {"--output", "x"},
		"--name":     {"--binary", r.binary, "--output", "x", "--name", ""},
		"has no tag": {"--binary", r.binary, "--output", "x", "--name", "localhost/untagged"},
		"--push":     {"--binary", r.binary, "--push", "UPPER:v1"},
		"--platform": {"--binary", r.binary, "--output", "x", "--platform", "linux"},
		"--user":     {"--binary", r.binary, "--output", "x", "--user", "nobody"},
		"--file":     {"--binary", r.binary, "--output", "x", "--file", "here"},
		"--dir":      {"--binary", r.binary, "--output", "x", "--dir", "here"},
		"--label":    {"--binary", r.binary, "--output", "x", "--label", "here"},
		"/missing":   {"--binary", "/missing", "--output", "x", "--name", "localhost/x:v1"},
	}
	for want, arguments := range cases {
		if err := run(arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want an error about %s", arguments, err, want)
		}
	}
}

package clients

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// table is where the results are.
const table = "../../docs/clients.md"

var update = flag.Bool("update", false, "write docs/clients.md and docs/rclone-suite.md")

// client is one program or library that speaks S3.
type client struct {
	name string
	// version says which one it is, for the record.
	version func(ctx context.Context, e *endpoint) (string, error)
	// run makes the client do all that is checked, and tells each result.
	run func(ctx context.Context, e *endpoint, tell func(check string, err error))
}

// steps is a client.run of checks that follow each other.
func steps(list ...step) func(context.Context, *endpoint, func(string, error)) {
	return func(ctx context.Context, e *endpoint, tell func(string, error)) {
		for _, s := range list {
			tell(s.name, s.run(ctx, e))
		}
	}
}

type step struct {
	name string
	run  func(ctx context.Context, e *endpoint) error
}

var clients = []client{awscli, boto3, s3cmd, rclone, s3fs, minioGo, sdkJS}

// cell is what one client did with one mux.
type cell struct{ passed, all int }

func (c cell) String() string { return fmt.Sprintf("%d/%d", c.passed, c.all) }

func TestClients(t *testing.T) {
	results := map[string]cell{}
	checks := map[string][]string{}
	versions := map[string]string{}
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			e := startMux(t, mode.name, mode.mode, mode.keyspace, mode.backends)
			for _, c := range clients {
				t.Run(c.name, func(t *testing.T) {
					own := *e
					own.dir = t.TempDir()
					version, err := c.version(t.Context(), &own)
					if err != nil {
						t.Fatalf("its version: %v", err)
					}
					versions[c.name] = version
					var done cell
					var names []string
					c.run(t.Context(), &own, func(check string, err error) {
						names = append(names, check)
						done.all++
						t.Run(check, func(t *testing.T) {
							if err != nil {
								t.Fatal(err)
							}
							done.passed++
						})
					})
					if len(checks[c.name]) == 0 {
						checks[c.name] = names
					}
					results[c.name+" "+mode.name] = done
				})
			}
		})
	}
	if t.Failed() || len(results) < len(modes)*len(clients) {
		return
	}
	plain := func(b []byte) []byte { return versionColumn.ReplaceAll(b, []byte("$1 $2")) }
	compareFile(t, table, document(results, checks, versions), plain)
}

func document(results map[string]cell, checks map[string][]string, versions map[string]string) []byte {
	var b bytes.Buffer
	b.WriteString("# Clients\n\nWhat real clients do with a mux of each mode over three S3 stores (versitygw), each with its defaults wherever it can be.\n" +
		"Written by `make test-clients CLIENTFLAGS=-update`; `make test-clients` runs all of it and compares.\nA cell is checks passed of checks made.\n\n| client |")
	for _, mode := range modes {
		fmt.Fprintf(&b, " %s |", mode.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(modes)) + "\n")
	for _, c := range clients {
		fmt.Fprintf(&b, "| %s |", c.name)
		for _, mode := range modes {
			fmt.Fprintf(&b, " %s |", results[c.name+" "+mode.name])
		}
		b.WriteString("\n")
	}
	b.WriteString("\n`nested` is a failover over a mirror of two stores and a third store; `failover` and `sticky-by-key` have keyspace spread.\n\n| client | version | checks |\n|---|---|---|\n")
	for _, c := range clients {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.name, versions[c.name], strings.Join(checks[c.name], ", "))
	}
	b.WriteString("\nrclone's own suite of tests for its s3 backend: [rclone-suite.md](rclone-suite.md).\n")
	return b.Bytes()
}

// versionColumn is what may differ from one machine to the next.
var versionColumn = regexp.MustCompile(`(?m)^(\| [^|]+ \|) [^|]* (\| [^|]+ \|)$`)

// compareFile compares a file with what came out, or writes it. plain takes away
// what may differ.
func compareFile(t *testing.T, file string, got []byte, plain func([]byte) []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if !bytes.Equal(plain(got), plain(want)) {
		t.Errorf("%s is not what came out; make test-clients CLIENTFLAGS=-update writes it:\n%s", filepath.Base(file), got)
	}
}

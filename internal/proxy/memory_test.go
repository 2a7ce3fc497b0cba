//go:build memory

package proxy

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/proxy/spool"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// Variables of the measurement of memory, which takes minutes and therefore has a
// build tag of its own: envMemory is the size of each body in bytes, 1 GiB if it is
// not set, and envMemoryClients their number, or 16. envMemoryServer makes the
// process that is measured.
const (
	envMemory        = "STORAGEMUX_MEMORY_BYTES"
	envMemoryClients = "STORAGEMUX_MEMORY_CLIENTS"
	envMemoryServer  = "STORAGEMUX_MEMORY_SERVER"

	// maxResident is what the proxy may have in memory meanwhile.
	maxResident = 256 << 20
)

// discarding is a store that verifies what it is sent and keeps nothing.
type discarding struct{ *memory.Storage }

func (d discarding) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	r, err := storage.OpenBody(ctx, "SetStream", body, opts.Checksums)
	if err != nil {
		return storage.Info{}, err
	}
	defer r.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, make([]byte, 128<<10))
	return storage.Info{Key: key, Size: n, ETag: "discarded", ModTime: time.Now()}, err
}

// serveUntilInputEnds is the process that is measured.
func serveUntilInputEnds(t *testing.T) {
	t.Helper()
	d := testDocument(1, "a", "b", "c")
	d.Muxes[0].Mode, d.Muxes[0].BackendTimeout = muxconfig.ModeMirror, muxconfig.Duration(30*time.Second)
	r := start(t, d, func(o *Options) {
		o.Spool = spool.Options{Memory: 64 << 20}
		o.open = func(*muxconfig.Backend) (storage.Storage, error) { return discarding{memory.New(0)}, nil }
	})
	fmt.Fprintf(os.Stdout, "address %s\n", r.Addr("s3"))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func TestLargeWritesNeedLittleMemory(t *testing.T) {
	if os.Getenv(envMemoryServer) != "" {
		serveUntilInputEnds(t)
		return
	}
	size, err := strconv.ParseInt(cmp.Or(os.Getenv(envMemory), "1073741824"), 10, 64)
	if err != nil || size < 1<<20 {
		t.Fatalf("%s must be a number of bytes, at least 1 MiB", envMemory)
	}
	clients, err := strconv.Atoi(cmp.Or(os.Getenv(envMemoryClients), "16"))
	if err != nil || clients < 1 {
		t.Fatalf("%s must be a number from 1 on", envMemoryClients)
	}
	server := exec.Command(os.Args[0], "-test.run", "^TestLargeWritesNeedLittleMemory$", "-test.v")
	server.Env = append(os.Environ(), envMemoryServer+"=1")
	input, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(output)
	address := ""
	for address == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the server has ended: %v", err)
		}
		address, _ = strings.CutPrefix(line, "address ")
		if address == line {
			address = ""
		}
	}
	var rest sync.WaitGroup
	rest.Go(func() { _, _ = io.Copy(io.Discard, lines) })

	block := pseudoContent("block", 1<<20)
	size = size >> 20 << 20
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, _ = io.Copy(sum, repeated(block, size))
	checksum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum.Sum32()))
	began := time.Now()
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	var puts sync.WaitGroup
	for i := range clients {
		puts.Go(func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, fmt.Sprintf("http://%s/assets/k%d", strings.TrimSpace(address), i), repeated(block, size))
			if err != nil {
				t.Error(err)
				return
			}
			r.ContentLength = size
			r.Header.Set("X-Amz-Checksum-Crc32c", checksum)
			response, err := transport.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return
			}
			text, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Errorf("status %d: %s", response.StatusCode, text)
			}
		})
	}
	puts.Wait()
	transport.CloseIdleConnections()
	peak := peakMemory(t, server.Process.Pid)
	_ = input.Close()
	rest.Wait()
	if err := server.Wait(); err != nil {
		t.Errorf("the server: %v", err)
	}
	t.Logf("%d bodies of %d MiB at once to three members in %s: at most %d MiB resident", clients, size>>20, time.Since(began).Round(time.Second), peak>>20)
	if peak > maxResident {
		t.Errorf("%d MiB were resident, more than %d", peak>>20, maxResident>>20)
	}
}

// repeated reads block over and over, size bytes in all.
func repeated(block []byte, size int64) io.Reader {
	return io.LimitReader(&repeater{block: block}, size)
}

type repeater struct {
	block []byte
	at    int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := copy(p, r.block[r.at:])
	r.at = (r.at + n) % len(r.block)
	return n, nil
}

// peakMemory is the most that a process has had resident, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("the kernel does not tell the peak")
	return 0
}

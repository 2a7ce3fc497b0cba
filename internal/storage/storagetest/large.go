package storagetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
)

// largeEnv holds, in the process that LargeWrites starts, the address of the
// server.
const largeEnv = "STORAGEMUX_LARGE_WRITES"

const (
	largeWriters = 16
	largeLimit   = 128 << 20
)

// LargeWrites writes 16 objects of size bytes each at the same time, in a process
// of their own, and fails if that ever held more than 128 MiB. serve starts what
// they are sent to and returns its address; open opens the store that is there.
func LargeWrites(t *testing.T, size int64, serve func(t *testing.T) string, open func(t *testing.T, address string) storage.Storage) {
	if address := os.Getenv(largeEnv); address != "" {
		writeLarge(t, size, open(t, address))
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), largeEnv+"="+serve(t))
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	most := regexp.MustCompile(`VmHWM: (\d+) KiB`).FindSubmatch(output)
	if most == nil {
		t.Fatalf("the process did not say what it held:\n%s", output)
	}
	held, _ := strconv.ParseInt(string(most[1]), 10, 64)
	t.Logf("%d writes of %d MiB each: at most %d MiB resident", largeWriters, size>>20, held>>10)
	if held<<10 > largeLimit {
		t.Errorf("the process held %d MiB, which must be under %d", held>>10, largeLimit>>20)
	}
}

func writeLarge(t *testing.T, size int64, s storage.Storage) {
	var writers sync.WaitGroup
	for i := range largeWriters {
		writers.Go(func() {
			key := fmt.Sprintf("large-%d", i)
			body := storage.Stream(io.LimitReader(zeros{}, size), size)
			if _, err := s.SetStream(context.Background(), key, body, storage.SetOptions{}); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	writers.Wait()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	most := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	fmt.Printf("VmHWM: %s KiB\n", bytes.TrimSpace(most[1]))
}

// zeros is an endless content that costs nothing.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

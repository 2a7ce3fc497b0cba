package proxy

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails the package if goroutines are left behind.
func TestMain(m *testing.M) {
	admin() // its certificates are of today, not of the virtual time of some test
	code := m.Run()
	if leaked := waitForGoroutines(); code == 0 && leaked != "" {
		fmt.Fprintln(os.Stderr, "goroutines were left behind:\n\n"+leaked)
		code = 1
	}
	os.Exit(code)
}

func waitForGoroutines() string {
	deadline := time.Now().Add(5 * time.Second)
	for {
		buf := make([]byte, 4<<20)
		stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		var left []string
		for _, stack := range stacks {
			// toxiproxy forgets goroutines of connections that it has closed.
			if !strings.Contains(stack, "proxy.TestMain") && !strings.Contains(stack, "/toxiproxy/") && !strings.Contains(stack, "os/signal.") {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return ""
		}
		if time.Now().After(deadline) {
			return strings.Join(left, "\n\n")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

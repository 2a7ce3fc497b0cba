package storagetest

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// failOnLeakedGoroutines fails t if, after its cleanups, goroutines run that
// did not run when this was called. It gives those that are ending a moment.
func failOnLeakedGoroutines(t *testing.T) {
	t.Helper()
	before := goroutines()
	t.Cleanup(func() {
		deadline := time.Now().Add(soon)
		for {
			var leaked []string
			for id, stack := range goroutines() {
				if _, known := before[id]; !known {
					leaked = append(leaked, stack)
				}
			}
			if len(leaked) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("%d goroutines were left behind:\n\n%s", len(leaked), strings.Join(leaked, "\n\n"))
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// goroutines returns the stacks of all goroutines but those of the test
// runner, by their number.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	stacks := map[string]string{}
	for _, stack := range strings.Split(string(buf), "\n\n") {
		header, _, _ := strings.Cut(stack, " [")
		if strings.Contains(stack, "testing.tRunner") || strings.Contains(stack, "testing.(*M).") || strings.Contains(stack, "os/signal.") {
			continue
		}
		stacks[header] = stack
	}
	return stacks
}

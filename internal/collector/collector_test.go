package collector

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// goal returns up to how many bytes the heap may grow while it holds as many.
func goal(held int) uint64 {
	data := make([]byte, held)
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(sample)
	runtime.KeepAlive(data)
	return sample[0].Value.Uint64()
}

func TestASmallHeapMayGrowFurtherAndALargeOneLessFar(t *testing.T) {
	t.Setenv("GOGC", "")
	ballast = nil
	debug.SetGCPercent(100)
	small, large := goal(0), goal(100<<20)
	Ease()
	Ease()
	if eased := goal(0) - ballastBytes; eased < 3*small {
		t.Errorf("an empty heap may grow to %d bytes, before to %d", eased, small)
	}
	if eased := goal(100<<20) - ballastBytes; eased >= large {
		t.Errorf("a heap of 100 MiB may grow to %d bytes, before to %d", eased, large)
	}
}

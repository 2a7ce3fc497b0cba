package collector

import (
	"runtime"
	"testing"
)

var sink []byte

// collections returns how often 256 MiB of garbage make the collector run.
func collections() uint32 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 256 << 6 {
		sink = make([]byte, 16<<10)
	}
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}

func TestTheCollectorRunsSeldomOnASmallHeap(t *testing.T) {
	before := collections()
	Ease()
	Ease()
	if after := collections(); after*2 > before {
		t.Errorf("256 MiB of garbage are collected in %d runs, before in %d", after, before)
	}
}

// Package collector makes Go's garbage collector fit a process that holds little
// and makes much garbage, as a proxy does. It imports nothing of this module.
package collector

import (
	"os"
	"runtime/debug"
)

const (
	// ballastBytes is what the heap seems to hold besides what it holds: with a
	// few megabytes of its own a process would collect dozens of times a second.
	ballastBytes = 32 << 20
	// percent is by how much the heap may grow before it is collected. With the
	// ballast that is 16 MiB for an empty heap, and less than Go's default of
	// 100 gives to one that holds 32 MiB or more.
	percent = 50
)

var ballast []byte

// Ease lets a small heap grow by 16 MiB between collections instead of 4, and a
// large one by half instead of by all that it holds. The ballast is never touched
// and therefore takes none of the machine's memory. Who sets GOGC decides instead.
func Ease() {
	if ballast != nil || os.Getenv("GOGC") != "" {
		return
	}
	ballast = make([]byte, ballastBytes)
	debug.SetGCPercent(percent)
}

// Package collector makes Go's garbage collector fit a process that holds little
// and makes much garbage, as a proxy does. It imports nothing of this module.
package collector

// ballastBytes is what the heap seems to hold besides what it holds: with a few
// megabytes of its own a process would collect dozens of times a second. It bounds
// what this adds to the memory of a process, whatever the process holds.
const ballastBytes = 32 << 20

var ballast []byte

// Ease lets the heap grow by some 32 MiB more between collections than Go's default
// does. The memory that it allocates itself is never touched and therefore takes
// none of the machine's. GOGC and GOMEMLIMIT work as ever.
func Ease() {
	if ballast == nil {
		ballast = make([]byte, ballastBytes)
	}
}

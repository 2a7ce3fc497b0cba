// Command bench measures StorageMux side by side with what a user would pick
// instead, on loopback, and writes docs/benchmarks.md and its graphs. The same
// load goes through each path in interleaved rounds of one run, so that what the
// machine does besides hits all alike; ratios of medians are what counts.
//
// It may import storage and the S3 front of this module, for stores that verify
// and discard; everything else it sees is a process behind a port.
package main

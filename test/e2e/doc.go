// Package e2e tests StorageMux as its users meet it: on a real cluster, with S3
// servers and clients that other people wrote. The specs that carry the label
// "demo" are what `make demo` shows.
//
// It may import anything.
package e2e

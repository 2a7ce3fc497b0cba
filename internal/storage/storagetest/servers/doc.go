// Package servers runs, for tests, the servers that stores speak to: real ones,
// which this project did not write, on loopback, ended with the test. The
// exceptions are Bunny, whose vendor has no server to run, and Sink.
//
// It imports nothing of this module.
package servers

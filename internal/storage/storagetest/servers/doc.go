// Package servers runs, for tests, the servers that stores speak to: real ones,
// which this project did not write, on loopback, ended with the test.
//
// It imports nothing of this module.
package servers

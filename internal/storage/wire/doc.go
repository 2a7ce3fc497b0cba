// Package wire is what stores over HTTP share: connections, the meaning of
// status codes, and the reading of an answer as an object.
//
// It imports package storage and nothing else of this module.
package wire

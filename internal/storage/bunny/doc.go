// Package bunny is a store over a storage zone of bunny.net, through the HTTP
// API of its edge storage.
//
// It imports packages storage, scratch, staged, tree and wire, and nothing else of
// this module.
package bunny

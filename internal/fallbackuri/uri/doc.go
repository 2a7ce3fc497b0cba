// Package uri reads and writes fallback:// URIs: ordered lists of other URIs,
// the candidates, in one string. It knows the grammar and nothing about what a
// candidate leads to, so that the controller, the proxy and authors' tools mean
// the same by one string.
//
// It imports nothing of this module.
package uri

// Package muxengine makes one storage.Storage out of several. A mode orders
// the members that may serve a request and names the executor (walk, race or
// fan-out) that tries them; the engine adds timeouts, health, in-place retry,
// replay, resume, drain, figures, events and spans around every attempt.
//
// Of this module it imports only internal/storage. It must import neither
// Kubernetes nor the wire document (muxconfig), the API types or the proxy.
package muxengine

// Package muxconfig is the wire contract between the controller and its
// proxies: the versioned document that goes down in a Secret, its validation,
// and the report that comes back. Controller and proxies use the same code, so
// what one accepts the other does too.
//
// It imports nothing of this module, neither Kubernetes nor storage SDKs.
package muxconfig

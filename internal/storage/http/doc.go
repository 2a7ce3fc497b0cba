// Package http is a store over an HTTP server: a WebDAV folder, which can be
// read and written, or plain files, which can be read.
//
// It imports packages storage, staged, tree and wire, and nothing else of this
// module.
package http

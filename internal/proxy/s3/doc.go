// Package s3 is the S3 front: an http.Handler that speaks the S3 protocol to
// clients and a storage.Storage below. It verifies signatures and bodies,
// translates requests, answers and errors, and streams.
//
// It imports storage and proxy/sigv4 of this module.
package s3

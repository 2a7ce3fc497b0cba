// Package s3 is a store over a bucket of any S3 service, or a prefix of one. It
// speaks the protocol itself over net/http, and takes from minio-go only how
// credentials are found in a pod's surroundings. It never retries but for a wrong
// clock, and sets no timeout on a transfer: both are its caller's.
//
// Every write carries a commit token, so that a server can tell a whole body
// from one that was cut: see put.go.
//
// It imports packages storage and wire, and nothing else of this module.
package s3

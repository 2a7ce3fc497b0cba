// Package sigv4 checks what an S3 client sends: AWS Signature Version 4 in
// headers and in presigned URLs, and bodies in every form that S3 knows, with
// their chunk signatures, trailers and checksums. Its Body gives out the last
// piece of a content only after all of it has been verified.
//
// It imports nothing of this module.
package sigv4

// Package storage is the contract of every object store: the Storage
// interface, its errors and their classes, byte ranges, preconditions,
// capabilities and bodies that can be read again. A backend, a mux and a
// fallback URI are each a Storage.
//
// It imports nothing of this module. Packages below it (storage/s3,
// storage/file, ...) import only this one; none of them may import Kubernetes.
package storage

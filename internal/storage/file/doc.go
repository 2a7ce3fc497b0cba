// Package file is a store over a folder: one file per object, found where its
// key says, with headers and metadata in the extended attribute
// "user.storagemux". A write goes to a temporary file, is synced to disk,
// renamed over the object before it, and the folder is synced too before the
// write is acknowledged. Several processes may share a folder.
//
// It imports packages storage and staged, and nothing else of this module.
package file

// Package staged takes uploads in parts for stores that cannot do so themselves:
// parts are objects under a reserved, hidden prefix of the store until the upload
// is completed, when they are read one after another into the object. All state
// is in the store, so that any process with a handle on it can go on with an
// upload.
//
// What becomes of uploads that nobody completes or aborts: an upload whose last
// part is older than Expiry is removed when another one is created, and so is what
// a crash left of an upload's removal. Each process looks once an hour at most, and
// removes at most maxSwept uploads each time.
//
// It imports package storage and nothing else of this module.
package staged

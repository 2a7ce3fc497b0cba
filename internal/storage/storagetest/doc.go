// Package storagetest is the acceptance suite of the Storage contract: Run
// checks any storage.Storage, a mux included, through nothing but the interface.
// What a store says it cannot do is checked to be refused, what it says it can
// do is checked to work.
//
// It imports package storage and nothing else of this module.
package storagetest

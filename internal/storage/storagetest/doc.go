// Package storagetest is the acceptance suite of the Storage contract: Run
// checks any storage.Storage, a mux included, through nothing but the interface.
// What a store says it cannot do is checked to be refused, what it says it can
// do is checked to work.
//
// RunFaults checks the same of stores behind a network that breaks.
//
// It imports packages storage and servers, and nothing else of this module.
package storagetest

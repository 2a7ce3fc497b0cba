// Package swift is a store over a container of OpenStack Swift. Who the proxy is
// for it, the library ncw/swift settles with the identity service, in all of its
// versions; requests for objects are this package's own, since that library puts
// a goroutine and two timers around each, repeats reads by itself and times the
// client's stalls as the server's.
//
// It imports packages storage, staged and wire, and nothing else of this module.
package swift

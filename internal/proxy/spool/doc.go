// Package spool keeps request bodies that may have to be sent to a second
// store: in memory up to a budget that all requests of the process share, then
// in unlinked files up to a second one, then not at all.
//
// Of this module it imports muxengine, whose Spool it implements.
package spool

// Package memory is a store that holds its objects in the process's memory, up
// to a limit, and loses them with it. Any number of handles can share one set
// of objects.
//
// It imports packages storage and staged, and nothing else of this module.
package memory

// Package scratch keeps contents for a moment that a store must have whole
// before it can begin to send them: those whose digest or length its server
// wants to know first.
//
// It imports package storage and nothing else of this module.
package scratch

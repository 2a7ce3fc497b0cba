// Package fallbacktest is the acceptance suite of whatever makes one store of
// several candidates as fallback URIs do: it fails candidates one after the other
// and looks at what the whole answers.
//
// Of this module it imports internal/storage and a store in memory.
package fallbacktest

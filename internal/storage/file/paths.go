package file

import (
	"path"
	"strings"
	"unicode/utf8"
)

// A key is split at its slashes, and each segment becomes one name below the
// folder of the segment before it, unchanged wherever the file system can hold
// it. A leading "%" marks the names that cannot be plain:
//
//	%0           the empty segment, as in "a//b" and "a/"
//	%. and %..   the segments "." and ".."
//	%%x          the segment "%x"
//	%+x          the start of a segment of more than maxPlain bytes: a folder
//	             that holds the rest of it
//	%=x          the last piece of such a segment
//	%fNAME       the object whose name would be NAME, where NAME is a folder
//
// So "a" and "a/b" live together as "%fa" and "a/b". Which of its two names an
// object has depends on what was there when it was written; both are looked at.
//
// Files put there by others are objects too if their name is one that this
// mapping gives to a key. Names that no key is given ("%x", or longer than
// maxPlain bytes) are not listed.

// maxPlain leaves room for the markers below the 255 bytes of a name.
const maxPlain = 240

const altMarker = "%f"

// location is where a key's object is: dir is "." or a slash-separated path.
type location struct{ dir, name string }

func (l location) plain() string { return path.Join(l.dir, l.name) }
func (l location) alt() string   { return path.Join(l.dir, altMarker+l.name) }

// locate maps a valid key.
func locate(key string) location {
	var names []string
	for segment := range strings.SplitSeq(key, "/") {
		names = appendNames(names, segment)
	}
	last := len(names) - 1
	if last == 0 {
		return location{".", names[0]}
	}
	return location{strings.Join(names[:last], "/"), names[last]}
}

// folder maps a key prefix that ends at a slash, or is empty, to its folder.
func folder(prefix string) string {
	if prefix == "" {
		return "."
	}
	var names []string
	for segment := range strings.SplitSeq(strings.TrimSuffix(prefix, "/"), "/") {
		names = appendNames(names, segment)
	}
	return strings.Join(names, "/")
}

func appendNames(names []string, segment string) []string {
	switch {
	case segment == "":
		return append(names, "%0")
	case segment == "." || segment == "..":
		return append(names, "%"+segment)
	case len(segment) > maxPlain:
		for len(segment) > maxPlain {
			cut := maxPlain
			for cut > 0 && !utf8.RuneStart(segment[cut]) {
				cut--
			}
			names = append(names, "%+"+segment[:cut])
			segment = segment[cut:]
		}
		return append(names, "%="+segment)
	case segment[0] == '%':
		return append(names, "%"+segment)
	default:
		return append(names, segment)
	}
}

// piece is what a name stands for in a listing.
type piece struct {
	text string
	// open: text is not the end of the segment; the name is a folder that
	// holds the rest.
	open bool
	// alt: the name is an object's second one.
	alt bool
}

// pieceOf is the inverse of appendNames for one name. inside says that the
// name is in a folder that holds the rest of a segment. ok is false for names
// that appendNames never gives.
func pieceOf(name string, inside bool) (p piece, ok bool) {
	if name == "" {
		return piece{}, false
	}
	if rest, found := strings.CutPrefix(name, altMarker); found {
		p, ok = pieceOf(rest, inside)
		ok = ok && !p.open && !p.alt
		p.alt = true
		return p, ok
	}
	marker := ""
	if len(name) > 1 && name[0] == '%' {
		marker = name[:2]
	}
	switch {
	case marker == "%+":
		return piece{text: name[2:], open: true}, len(name) > 2 && len(name)-2 <= maxPlain
	case inside:
		return piece{text: name[min(2, len(name)):]}, marker == "%=" && len(name) > 2
	case name == "%0":
		return piece{}, true
	case name == "%." || name == "%..":
		return piece{text: name[1:]}, true
	case marker == "%%":
		return piece{text: name[1:]}, len(name)-1 <= maxPlain
	default:
		return piece{text: name}, name[0] != '%' && len(name) <= maxPlain
	}
}

package wire

import (
	"strings"
)

// Names maps the names of metadata to those that a server keeps as they are, and
// back. A name that the server would keep is its own image, so that what other
// clients wrote is read as they meant it; any other begins with Mark and has
// each byte but letters and digits as Escape and two hexadecimal digits.
type Names struct {
	// Mark and Escape consist of what Kept allows.
	Mark   string
	Escape byte
	// Kept reports whether the server keeps a name of lower case.
	Kept func(name string) bool
}

const hexDigits = "0123456789abcdef"

// To returns the server's name for name.
func (n Names) To(name string) string {
	if n.Kept(name) && !strings.HasPrefix(name, n.Mark) {
		return name
	}
	text := []byte(n.Mark)
	for i := range len(name) {
		c := name[i]
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			text = append(text, c)
		} else {
			text = append(text, n.Escape, hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return string(text)
}

// From is the inverse of To. What To cannot have made is its own image.
func (n Names) From(name string) string {
	name = strings.ToLower(name)
	rest, marked := strings.CutPrefix(name, n.Mark)
	if !marked {
		return name
	}
	var text []byte
	for i := 0; i < len(rest); i++ {
		if rest[i] != n.Escape {
			text = append(text, rest[i])
			continue
		}
		if i+2 >= len(rest) {
			return name
		}
		high, low := strings.IndexByte(hexDigits, rest[i+1]), strings.IndexByte(hexDigits, rest[i+2])
		if high < 0 || low < 0 {
			return name
		}
		text = append(text, byte(high<<4|low))
		i += 2
	}
	if n.To(string(text)) != name {
		return name
	}
	return string(text)
}

package sigv4

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Parameter is one decoded name and value of a query.
type Parameter struct{ Name, Value string }

// Query holds the parameters of a request in their order.
type Query []Parameter

// ParseQuery decodes a raw query. Unlike url.ParseQuery it takes a semicolon
// as any other byte, as S3 does. Its error is of type *Error.
func ParseQuery(raw string) (Query, error) {
	if raw == "" {
		return nil, nil
	}
	params := make(Query, 0, strings.Count(raw, "&")+1)
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		var p Parameter
		var err error
		if p.Name, err = url.QueryUnescape(name); err == nil {
			p.Value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return nil, errorf(CodeInvalidURI, "the query holds an escape that is none")
		}
		params = append(params, p)
	}
	return params, nil
}

// Lookup returns the first value of name and whether there is one.
func (q Query) Lookup(name string) (string, bool) {
	for _, p := range q {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// Get returns the first value of name, or "".
func (q Query) Get(name string) string {
	value, _ := q.Lookup(name)
	return value
}

// Has reports whether there is a parameter called name.
func (q Query) Has(name string) bool {
	_, ok := q.Lookup(name)
	return ok
}

// appendCanonicalQuery appends params, encoded and sorted, without those named
// without.
func appendCanonicalQuery(dst []byte, params Query, without string) []byte {
	if len(params) == 0 {
		return dst
	}
	encoded := make(Query, 0, len(params))
	for _, p := range params {
		if without == "" || p.Name != without {
			encoded = append(encoded, Parameter{encode(p.Name, false), encode(p.Value, false)})
		}
	}
	slices.SortFunc(encoded, func(a, b Parameter) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	})
	for i, p := range encoded {
		if i > 0 {
			dst = append(dst, '&')
		}
		dst = append(append(append(dst, p.Name...), '='), p.Value...)
	}
	return dst
}

// EscapePath percent-encodes all of s but slashes and the bytes that RFC 3986
// calls unreserved.
func EscapePath(s string) string { return encode(s, true) }

// encode percent-encodes all but RFC 3986's unreserved bytes, and slashes if
// they are to be kept.
func encode(s string, keepSlash bool) string {
	plain := true
	for i := 0; i < len(s) && plain; i++ {
		plain = unreserved(s[i]) || keepSlash && s[i] == '/'
	}
	if plain {
		return s
	}
	const hexDigits = "0123456789ABCDEF"
	out := make([]byte, 0, len(s)+len(s)/2)
	for i := range len(s) {
		if c := s[i]; unreserved(c) || keepSlash && c == '/' {
			out = append(out, c)
		} else {
			out = append(out, '%', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return string(out)
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '-' || c == '_' || c == '.' || c == '~'
}

// appendCanonicalHeaders appends a line for each signed header and false if
// one of them is not in the request. net/http keeps host and content-length
// outside the header map.
func appendCanonicalHeaders(dst []byte, r *http.Request, signed []string) ([]byte, bool) {
	for _, name := range signed {
		dst = append(append(dst, name...), ':')
		switch name {
		case "host":
			dst = append(dst, r.Host...)
		case "content-length":
			if r.ContentLength >= 0 {
				dst = strconv.AppendInt(dst, r.ContentLength, 10)
			}
		case "transfer-encoding":
			dst = append(dst, strings.Join(r.TransferEncoding, ",")...)
		default:
			values := r.Header[http.CanonicalHeaderKey(name)]
			if values == nil {
				return dst, false
			}
			for i, value := range values {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = appendCollapsed(dst, value)
			}
		}
		dst = append(dst, '\n')
	}
	return dst, true
}

// appendCollapsed appends value without spaces around it and with single
// spaces within.
func appendCollapsed(dst []byte, value string) []byte {
	value = strings.Trim(value, " \t")
	if !strings.Contains(value, "  ") {
		return append(dst, value...)
	}
	space := false
	for i := range len(value) {
		if value[i] == ' ' && space {
			continue
		}
		space = value[i] == ' '
		dst = append(dst, value[i])
	}
	return dst
}

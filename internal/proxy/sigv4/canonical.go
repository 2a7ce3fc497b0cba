package sigv4

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// parameter is one decoded name and value of a query.
type parameter struct{ name, value string }

// parseQuery decodes a raw query in its order. Unlike url.ParseQuery it takes
// a semicolon as any other byte, as S3 does.
func parseQuery(raw string) ([]parameter, error) {
	if raw == "" {
		return nil, nil
	}
	params := make([]parameter, 0, strings.Count(raw, "&")+1)
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		var p parameter
		var err error
		if p.name, err = url.QueryUnescape(name); err == nil {
			p.value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return nil, errorf(CodeInvalidURI, "the query holds an escape that is none")
		}
		params = append(params, p)
	}
	return params, nil
}

func lookup(params []parameter, name string) (string, bool) {
	for _, p := range params {
		if p.name == name {
			return p.value, true
		}
	}
	return "", false
}

// appendCanonicalQuery appends params, encoded and sorted, without those named
// without.
func appendCanonicalQuery(dst []byte, params []parameter, without string) []byte {
	if len(params) == 0 {
		return dst
	}
	encoded := make([]parameter, 0, len(params))
	for _, p := range params {
		if without == "" || p.name != without {
			encoded = append(encoded, parameter{encode(p.name, false), encode(p.value, false)})
		}
	}
	slices.SortFunc(encoded, func(a, b parameter) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
	for i, p := range encoded {
		if i > 0 {
			dst = append(dst, '&')
		}
		dst = append(append(append(dst, p.name...), '='), p.value...)
	}
	return dst
}

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

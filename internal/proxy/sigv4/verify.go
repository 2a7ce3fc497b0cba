package sigv4

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxSkew is how far a request's time may be from ours.
const MaxSkew = 15 * time.Minute

// MaxExpiry is the longest that a presigned URL may be valid.
const MaxExpiry = 7 * 24 * time.Hour

// UnsignedPayload stands in the place of a body's hash that the client did
// not compute.
const UnsignedPayload = "UNSIGNED-PAYLOAD"

// Auth is the result of a verified signature.
type Auth struct {
	// AccessKeyID is the id of the pair that signed.
	AccessKeyID string
	// Presigned is set where the signature stood in the query.
	Presigned bool
	// ContentSHA256 is what the client said of its body, a hash or the name
	// of a form; see ParsePayload.
	ContentSHA256 string

	chain *chain
}

// claim is what a request says of its signature, before it is checked.
type claim struct {
	accessKeyID string
	scope       scope
	stamp       string
	time        time.Time
	signed      []string
	signature   string
	// expires is how long a presigned request is valid.
	expires   time.Duration
	presigned bool
	payload   string
}

// Verify checks the signature of r, whose query params is, against keys at the
// time now. Its errors are of type *Error. It reads nothing of the body.
func Verify(r *http.Request, params Query, keys *Keyring, now time.Time) (*Auth, error) {
	c, contentSHA256, err := parseClaim(r, params)
	if err != nil {
		return nil, err
	}
	if err := c.checkTime(now); err != nil {
		return nil, err
	}
	if name := unsignedAmzHeader(r.Header, c); name != "" {
		return nil, errorf(CodeAccessDenied, "the header %s is present and was not signed", name)
	}
	key, known := keys.signingKey(c.accessKeyID, c.scope)
	if !known {
		return nil, errorf(CodeInvalidAccessKeyID, "the access key id is not known here")
	}
	if !c.matches(r, params, key) {
		return nil, errorf(CodeSignatureDoesNotMatch,
			"the signature that was computed does not match the one provided; check the secret key and the signing method")
	}
	return &Auth{
		AccessKeyID:   c.accessKeyID,
		Presigned:     c.presigned,
		ContentSHA256: contentSHA256,
		chain:         &chain{key: key, stamp: c.stamp, scope: c.scope.String(), previous: c.signature},
	}, nil
}

// parseClaim finds the signature in header or query. contentSHA256 is what the
// body is to be held against, which for a presigned URL is not always what was
// signed.
func parseClaim(r *http.Request, params Query) (c claim, contentSHA256 string, err error) {
	header := r.Header.Get("Authorization")
	inQuery := params.Has("X-Amz-Algorithm")
	contentSHA256 = r.Header.Get("X-Amz-Content-Sha256")
	switch {
	case header != "" && inQuery:
		return c, "", errorf(CodeInvalidArgument, "only one way to authenticate may be used, header or query")
	case inQuery:
		c, err = parsePresigned(params)
		c.payload = UnsignedPayload
		if value, ok := params.Lookup("X-Amz-Content-Sha256"); ok {
			c.payload = value
		}
		switch {
		case contentSHA256 == "":
			contentSHA256 = c.payload
		case c.signs("x-amz-content-sha256"):
			c.payload = contentSHA256
		}
		return c, contentSHA256, err
	case header == "" && params.Has("AWSAccessKeyId"), strings.HasPrefix(header, "AWS "):
		return c, "", errorf(CodeInvalidRequest, "signature version 2 is not supported; use %s", algorithm)
	case header == "":
		return c, "", errorf(CodeAccessDenied, "the request is not signed")
	case contentSHA256 == "":
		return c, "", errorf(CodeInvalidRequest, "the header x-amz-content-sha256 is missing")
	}
	c, err = parseAuthorization(header, r.Header)
	c.payload = contentSHA256
	return c, contentSHA256, err
}

func parseAuthorization(value string, header http.Header) (claim, error) {
	var c claim
	rest, ok := strings.CutPrefix(value, algorithm+" ")
	if !ok {
		return c, errorf(CodeInvalidRequest, "the way to authenticate is not supported; use %s", algorithm)
	}
	var credential, signed string
	for field := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "Credential":
			credential = value
		case "SignedHeaders":
			signed = value
		case "Signature":
			c.signature = value
		}
	}
	if c.accessKeyID, c.scope, ok = parseCredential(credential); !ok {
		return c, errorf(CodeAuthorizationMalformed, "the credential must have the form id/date/region/%s/%s", service, terminator)
	}
	if signed == "" || c.signature == "" {
		return c, errorf(CodeAuthorizationMalformed, "SignedHeaders and Signature must be given")
	}
	c.signed = strings.Split(signed, ";")

	c.stamp = header.Get("X-Amz-Date")
	var err error
	if c.stamp != "" {
		c.time, err = time.Parse(stampLayout, c.stamp)
	} else if c.time, err = http.ParseTime(header.Get("Date")); err == nil {
		c.time = c.time.UTC()
		c.stamp = c.time.Format(stampLayout)
	}
	if err != nil {
		return c, errorf(CodeAccessDenied, "a signed request needs a valid x-amz-date or Date header")
	}
	return c, nil
}

func parsePresigned(params Query) (claim, error) {
	c := claim{presigned: true}
	if params.Get("X-Amz-Algorithm") != algorithm {
		return c, errorf(CodeAuthorizationQuery, "X-Amz-Algorithm must be %s", algorithm)
	}
	var ok bool
	if c.accessKeyID, c.scope, ok = parseCredential(params.Get("X-Amz-Credential")); !ok {
		return c, errorf(CodeAuthorizationQuery, "X-Amz-Credential must have the form id/date/region/%s/%s", service, terminator)
	}
	c.stamp = params.Get("X-Amz-Date")
	var err error
	if c.time, err = time.Parse(stampLayout, c.stamp); err != nil {
		return c, errorf(CodeAuthorizationQuery, "X-Amz-Date must have the form %s", stampLayout)
	}
	seconds, err := strconv.ParseInt(params.Get("X-Amz-Expires"), 10, 64)
	if err != nil || seconds < 0 || seconds > int64(MaxExpiry/time.Second) {
		return c, errorf(CodeAuthorizationQuery, "X-Amz-Expires must be 0 to %d seconds", int64(MaxExpiry/time.Second))
	}
	c.expires = time.Duration(seconds) * time.Second
	c.signed = strings.Split(params.Get("X-Amz-SignedHeaders"), ";")
	if c.signature = params.Get("X-Amz-Signature"); c.signature == "" {
		return c, errorf(CodeAuthorizationQuery, "X-Amz-Signature must be given")
	}
	return c, nil
}

func (c *claim) checkTime(now time.Time) error {
	switch {
	case c.scope.date != c.time.Format(dateLayout) && c.presigned:
		return errorf(CodeAuthorizationQuery, "the date of the credential is not that of X-Amz-Date")
	case c.scope.date != c.time.Format(dateLayout):
		return errorf(CodeAuthorizationMalformed, "the date of the credential is not that of the request")
	case c.presigned && c.time.After(now.Add(MaxSkew)):
		return errorf(CodeAccessDenied, "the request is not valid yet")
	case c.presigned && now.After(c.time.Add(c.expires)):
		return errorf(CodeAccessDenied, "the request has expired")
	case !c.presigned && now.Sub(c.time).Abs() > MaxSkew:
		return errorf(CodeRequestTimeTooSkewed, "the request's time and the server's are more than %s apart", MaxSkew)
	}
	return nil
}

func (c *claim) signs(name string) bool {
	for _, signed := range c.signed {
		if signed == name {
			return true
		}
	}
	return false
}

// unsignedAmzHeader returns a header that changes what the request means and
// that the signature does not cover, or host if that is not covered. A
// presigned URL cannot know its body's hash, and CloudFront adds its id.
func unsignedAmzHeader(header http.Header, c claim) string {
	if !c.signs("host") {
		return "host"
	}
	for name := range header {
		if !strings.HasPrefix(name, "X-Amz-") || name == "X-Amz-Cf-Id" ||
			c.presigned && name == "X-Amz-Content-Sha256" {
			continue
		}
		if lower := strings.ToLower(name); !c.signs(lower) {
			return lower
		}
	}
	return ""
}

// matches computes the signature over r and compares in constant time. The
// path is first taken in the one canonical encoding, and where the client sent
// another, as it was sent.
func (c *claim) matches(r *http.Request, params Query, key *[32]byte) bool {
	canonical := encode(r.URL.Path, true)
	if c.matchesPath(r, canonical, params, key) {
		return true
	}
	sent := r.URL.EscapedPath()
	return sent != canonical && c.matchesPath(r, sent, params, key)
}

func (c *claim) matchesPath(r *http.Request, path string, params Query, key *[32]byte) bool {
	without := ""
	if c.presigned {
		without = "X-Amz-Signature"
	}
	if path == "" {
		path = "/"
	}
	buf := make([]byte, 0, 1024)
	buf = append(append(buf, r.Method...), '\n')
	buf = append(append(buf, path...), '\n')
	buf = append(appendCanonicalQuery(buf, params, without), '\n')
	buf, complete := appendCanonicalHeaders(buf, r, c.signed)
	if !complete {
		return false
	}
	buf = append(buf, '\n')
	for i, name := range c.signed {
		if i > 0 {
			buf = append(buf, ';')
		}
		buf = append(buf, name...)
	}
	buf = append(append(buf, '\n'), c.payload...)
	hash := sha256.Sum256(buf)

	buf = append(append(buf[:0], algorithm...), '\n')
	buf = append(append(buf, c.stamp...), '\n')
	buf = append(append(buf, c.scope.String()...), '\n')
	buf = hex.AppendEncode(buf, hash[:])
	sum := mac(key[:], string(buf))
	want := hex.AppendEncode(buf[:0], sum[:])
	return subtle.ConstantTimeCompare(want, []byte(c.signature)) == 1
}

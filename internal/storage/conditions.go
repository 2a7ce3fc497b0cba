package storage

import (
	"strings"
	"time"
)

// Conditions are the preconditions of RFC 9110, section 13. The zero value
// has none. Entity tags are without quotes; "*" stands for any object.
type Conditions struct {
	IfMatch           []string
	IfNoneMatch       []string
	IfModifiedSince   time.Time
	IfUnmodifiedSince time.Time
}

// IsZero reports whether there is nothing to check.
func (c Conditions) IsZero() bool {
	return len(c.IfMatch) == 0 && len(c.IfNoneMatch) == 0 &&
		c.IfModifiedSince.IsZero() && c.IfUnmodifiedSince.IsZero()
}

// CheckRead evaluates c, in the order of RFC 9110 section 13.2.2, for a read of
// an object that exists. It returns nil, PRECONDITION_FAILED or NOT_MODIFIED.
func (c Conditions) CheckRead(info Info) error {
	modified := info.ModTime.Truncate(time.Second)
	switch {
	case len(c.IfMatch) > 0:
		if !matchesStrong(c.IfMatch, info.ETag) {
			return c.failed("If-Match")
		}
	case !c.IfUnmodifiedSince.IsZero() && modified.After(c.IfUnmodifiedSince):
		return c.failed("If-Unmodified-Since")
	}
	switch {
	case len(c.IfNoneMatch) > 0:
		if matches(c.IfNoneMatch, info.ETag) {
			return Errorf(CodeNotModified, "", "If-None-Match")
		}
	case !c.IfModifiedSince.IsZero() && !modified.After(c.IfModifiedSince):
		return Errorf(CodeNotModified, "", "If-Modified-Since")
	}
	return nil
}

// CheckWrite evaluates IfMatch and IfNoneMatch for a write over an object;
// exists says whether there is one. It returns nil, PRECONDITION_FAILED, or,
// for If-Match on nothing, KEY_NOT_FOUND.
func (c Conditions) CheckWrite(exists bool, info Info) error {
	if len(c.IfMatch) > 0 {
		if !exists {
			return Errorf(CodeKeyNotFound, "", "If-Match on a key without an object")
		}
		if !matchesStrong(c.IfMatch, info.ETag) {
			return c.failed("If-Match")
		}
	}
	if len(c.IfNoneMatch) > 0 && exists && matches(c.IfNoneMatch, info.ETag) {
		return c.failed("If-None-Match")
	}
	return nil
}

func (c Conditions) failed(header string) error {
	return Errorf(CodePreconditionFailed, "", "%s does not hold", header)
}

// matchesStrong compares as If-Match must: a weak tag equals nothing, since
// two different contents may share it.
func matchesStrong(tags []string, etag string) bool {
	for _, tag := range tags {
		if tag == "*" || etag != "" && tag == etag && !strings.HasPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// matches compares as If-None-Match must: by the tag alone.
func matches(tags []string, etag string) bool {
	for _, tag := range tags {
		if tag == "*" || etag != "" && strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}

// StrongTag reports whether etag says of two objects that have it that they are
// the same, byte by byte.
func StrongTag(etag string) bool { return etag != "" && !strings.HasPrefix(etag, "W/") }

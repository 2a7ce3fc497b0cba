package s3

import (
	"net/http"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// parseConditions reads the preconditions of a request; prefix is that of the
// headers, empty but for the source of a copy.
func parseConditions(header http.Header, prefix string) storage.Conditions {
	return storage.Conditions{
		IfMatch:           parseETags(header.Get(prefix + "If-Match")),
		IfNoneMatch:       parseETags(header.Get(prefix + "If-None-Match")),
		IfModifiedSince:   parseTime(header.Get(prefix + "If-Modified-Since")),
		IfUnmodifiedSince: parseTime(header.Get(prefix + "If-Unmodified-Since")),
	}
}

// parseETags splits a list of entity tags and takes their quotes off.
func parseETags(value string) []string {
	var tags []string
	for tag := range strings.SplitSeq(value, ",") {
		tag = strings.TrimSpace(tag)
		weak := strings.HasPrefix(tag, "W/")
		tag = strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
		if tag == "" {
			continue
		}
		if weak {
			tag = "W/" + tag
		}
		tags = append(tags, tag)
	}
	return tags
}

// passConditions splits conditions into those that the store evaluates and
// those that are left to the front: where clients see derived tags, only the
// front can compare them.
func passConditions(c storage.Conditions, identity storage.Identity) (store, front storage.Conditions) {
	if identity == storage.IdentityNative {
		return c, storage.Conditions{}
	}
	return storage.Conditions{}, c
}

// checkRead evaluates the front's part of the conditions of a read.
func checkRead(c storage.Conditions, info storage.Info, identity storage.Identity) error {
	if c.IsZero() {
		return nil
	}
	info.ETag = clientETag(info, identity)
	return c.CheckRead(info)
}

// writeConditions reads the preconditions of a PUT.
func writeConditions(header http.Header, capabilities storage.Capabilities) (storage.Conditions, error) {
	c := storage.Conditions{
		IfMatch:     parseETags(header.Get("If-Match")),
		IfNoneMatch: parseETags(header.Get("If-None-Match")),
	}
	any := func(tags []string) bool { return len(tags) == 1 && tags[0] == "*" }
	switch {
	case c.IsZero():
		return c, nil
	case len(c.IfNoneMatch) > 0 && !any(c.IfNoneMatch):
		return c, notImplemented("If-None-Match on a write may only be *.")
	case !capabilities.ConditionalWrite:
		return c, unsupportedWrite("The backends cannot write under a condition.")
	case len(c.IfMatch) > 0 && !any(c.IfMatch) && capabilities.Identity != storage.IdentityNative:
		return c, unsupportedWrite("The backends have no entity tags in common, so that a write cannot depend on one.")
	}
	return c, nil
}

func unsupportedWrite(message string) error {
	e := notImplemented("%s", message)
	e.StorageCode = storage.CodeUnsupported
	return e
}

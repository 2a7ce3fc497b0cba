package s3

import (
	"encoding/xml"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/suaveplan/storagemux/internal/storage"
)

// What S3 allows of an object's tags; lengths are in units of UTF-16.
const (
	maxTags     = 10
	maxTagKey   = 128
	maxTagValue = 256
	// maxTagsXML is more than the most tags need, each character escaped.
	maxTagsXML = 64 << 10
)

type tag struct{ key, value string }

// checkTags returns tags by their keys, if S3 allows them.
func checkTags(tags []tag) (map[string]string, error) {
	if len(tags) > maxTags {
		return nil, refuse("BadRequest", http.StatusBadRequest, "Object tags cannot be greater than %d.", maxTags)
	}
	checked := make(map[string]string, len(tags))
	for _, t := range tags {
		_, twice := checked[t.key]
		switch {
		case t.key == "" || !isTagText(t.key, maxTagKey):
			return nil, invalidTag("The TagKey you have provided is invalid.")
		case !isTagText(t.value, maxTagValue):
			return nil, invalidTag("The TagValue you have provided is invalid.")
		case strings.HasPrefix(strings.ToLower(t.key), "aws:"):
			return nil, invalidTag("System tags cannot be added or updated by a requester.")
		case twice:
			return nil, invalidTag("Cannot provide multiple Tags with the same key.")
		}
		checked[t.key] = t.value
	}
	return checked, nil
}

func invalidTag(message string) error {
	return refuse("InvalidTag", http.StatusBadRequest, "%s", message)
}

// isTagText reports whether text is of letters, digits, spaces and some signs, of
// any script, and has at most most units of UTF-16.
func isTagText(text string, most int) bool {
	if len(text) > most*utf8.UTFMax || !utf8.ValidString(text) {
		return false
	}
	units := 0
	for _, r := range text {
		if !unicode.In(r, unicode.L, unicode.N, unicode.Z) && !strings.ContainsRune("_.:/=+-@", r) {
			return false
		}
		units++
		if r > 0xFFFF {
			units++
		}
	}
	return units <= most
}

// parseTagHeader reads the tags that a write brings along, in the form of a query.
func parseTagHeader(value string) (map[string]string, error) {
	var tags []tag
	for pair := range strings.SplitSeq(value, "&") {
		if pair == "" {
			continue
		}
		name, text, _ := strings.Cut(pair, "=")
		key, keyErr := url.QueryUnescape(name)
		decoded, valueErr := url.QueryUnescape(text)
		if keyErr != nil || valueErr != nil {
			return nil, invalidArgument("The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters.")
		}
		if tags = append(tags, tag{key, decoded}); len(tags) > maxTags {
			break
		}
	}
	return checkTags(tags)
}

// headerTags reads the tags that a write brings along, which every backend must
// be able to keep.
func headerTags(header http.Header, capabilities storage.Capabilities) (map[string]string, error) {
	value := header.Get("X-Amz-Tagging")
	if value == "" {
		return nil, nil
	}
	tags, err := parseTagHeader(value)
	if err == nil && len(tags) > 0 && !capabilities.Tagging {
		err = tagsUnsupported()
	}
	return tags, err
}

func tagsUnsupported() error { return unsupportedWrite("Not every backend keeps tags of objects.") }

// parseTagging reads the body of PutObjectTagging.
func parseTagging(body []byte) (map[string]string, error) {
	var parsed struct {
		XMLName xml.Name `xml:"Tagging"`
		Set     *struct {
			Tags []struct {
				Key, Value *string
			} `xml:"Tag"`
		} `xml:"TagSet"`
	}
	malformed := func(cause error) error {
		return &apiError{
			Code: "MalformedXML", Status: http.StatusBadRequest,
			Message: "The XML must be a Tagging with a TagSet of tags that have a Key and a Value each.", cause: cause,
		}
	}
	if err := xml.Unmarshal(body, &parsed); err != nil || parsed.Set == nil {
		return nil, malformed(err)
	}
	tags := make([]tag, len(parsed.Set.Tags))
	for i, t := range parsed.Set.Tags {
		if t.Key == nil || t.Value == nil {
			return nil, malformed(nil)
		}
		tags[i] = tag{*t.Key, *t.Value}
	}
	return checkTags(tags)
}

// getTagging answers with the object's tags. One on stores that keep none has
// none, which is what clients expect that ask before they copy.
func getTagging(q *request) error {
	if err := q.checkSelectors(); err != nil {
		return err
	}
	tags, err := storage.GetTags(q.r.Context(), q.cfg.Storage, q.target.key)
	if storage.CodeOf(err) == storage.CodeUnsupported {
		err = q.mustExist()
	}
	if err != nil {
		return err
	}
	d := newDocument()
	d.root("Tagging")
	d.open("TagSet")
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		d.open("Tag")
		d.text("Key", key)
		d.text("Value", tags[key])
		d.close("Tag")
	}
	d.close("TagSet")
	d.close("Tagging")
	return q.writeDocument(http.StatusOK, d)
}

func putTagging(q *request) error {
	if err := q.checkSelectors(); err != nil {
		return err
	}
	body, err := q.readXML(maxTagsXML)
	if err != nil {
		return err
	}
	tags, err := parseTagging(body)
	if err != nil {
		return err
	}
	return q.setTags(tags, http.StatusOK)
}

func deleteTagging(q *request) error {
	if err := q.checkSelectors(); err != nil {
		return err
	}
	return q.setTags(nil, http.StatusNoContent)
}

func (q *request) setTags(tags map[string]string, status int) error {
	if !q.cfg.Storage.Capabilities().Tagging {
		return tagsUnsupported()
	}
	if err := storage.SetTags(q.r.Context(), q.cfg.Storage, q.target.key, tags); err != nil {
		return err
	}
	q.done(status)
	return nil
}

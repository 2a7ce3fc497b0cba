package storage

import "context"

// Tagger is implemented by stores that keep tags with their objects:
// SetOptions.Tags give those of a new one, Info.TagCount tells how many there
// are. Which tags are allowed is the caller's affair.
type Tagger interface {
	// GetTags returns the tags of key, values by their keys. Codes:
	// KEY_NOT_FOUND, and UNSUPPORTED where the server keeps none after all.
	GetTags(ctx context.Context, key string) (map[string]string, error)

	// SetTags gives key these tags in the place of those it had; without any
	// they are removed. Content, entity tag and time of the last write stay.
	// Codes as of GetTags.
	SetTags(ctx context.Context, key string, tags map[string]string) error
}

// GetTags is GetTags of s; a store that keeps no tags answers UNSUPPORTED.
func GetTags(ctx context.Context, s Storage, key string) (map[string]string, error) {
	if t, ok := s.(Tagger); ok {
		return t.GetTags(ctx, key)
	}
	return nil, untagged("GetTags")
}

// SetTags is SetTags of s; a store that keeps no tags answers UNSUPPORTED.
func SetTags(ctx context.Context, s Storage, key string, tags map[string]string) error {
	if t, ok := s.(Tagger); ok {
		return t.SetTags(ctx, key, tags)
	}
	return untagged("SetTags")
}

// RefuseTags returns UNSUPPORTED if there are tags, for stores that keep none.
func RefuseTags(op string, tags map[string]string) error {
	if len(tags) == 0 {
		return nil
	}
	return untagged(op)
}

func untagged(op string) error {
	return Errorf(CodeUnsupported, op, "the backend keeps no tags")
}

package s3

import (
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

// tagging is the document that a store keeps of an object's tags.
type tagging struct {
	XMLName xml.Name `xml:"Tagging"`
	Tags    []tag    `xml:"TagSet>Tag"`
}

type tag struct{ Key, Value string }

var taggingQuery = query{{"tagging", ""}}

// encodeTags returns tags as a header has them.
func encodeTags(tags map[string]string) string {
	values := make(url.Values, len(tags))
	for key, value := range tags {
		values.Set(key, value)
	}
	return values.Encode()
}

// GetTags implements storage.Tagger.
func (s *Storage) GetTags(ctx context.Context, key string) (map[string]string, error) {
	const op = "GetTags"
	if err := s.validate(op, key); err != nil {
		return nil, err
	}
	return s.tags(ctx, op, key)
}

func (s *Storage) tags(ctx context.Context, op, key string) (map[string]string, error) {
	var found tagging
	err := s.getXML(ctx, op, key, taggingQuery, &found)
	if e, ok := errors.AsType[*storage.Error](err); ok && strings.Contains(e.Message, "NoSuchTagSet") {
		err = nil // some servers say so of an object that has none
	}
	if err != nil {
		return nil, err
	}
	tags := make(map[string]string, len(found.Tags))
	for _, t := range found.Tags {
		tags[t.Key] = t.Value
	}
	return tags, nil
}

// SetTags implements storage.Tagger.
func (s *Storage) SetTags(ctx context.Context, key string, tags map[string]string) error {
	const op = "SetTags"
	if err := s.validate(op, key); err != nil {
		return err
	}
	w := &write{store: s, ctx: ctx, op: op, key: key}
	if len(tags) == 0 {
		_, _, err := w.send(ctx, &request{method: http.MethodDelete, query: taggingQuery}, nil)
		return err
	}
	var wanted tagging
	for key, value := range tags {
		wanted.Tags = append(wanted.Tags, tag{key, value})
	}
	slices.SortFunc(wanted.Tags, func(a, b tag) int { return strings.Compare(a.Key, b.Key) })
	data, err := xml.Marshal(wanted)
	if err != nil {
		return storage.Errorf(storage.CodeRejected, op, "writing the tags of %q", key).WithCause(err)
	}
	sum, sha := md5.Sum(data), sha256.Sum256(data)
	header := http.Header{"Content-Md5": {base64.StdEncoding.EncodeToString(sum[:])}}
	_, _, err = w.send(ctx, &request{method: http.MethodPut, query: taggingQuery, header: header, payload: hex.EncodeToString(sha[:])}, fromBytes(data))
	return err
}

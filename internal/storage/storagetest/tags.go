package storagetest

import (
	"maps"

	"github.com/suaveplan/storagemux/internal/storage"
)

var tagChecks = []check{
	{name: "tags given with a write", needs: hasTags, run: tagsOfWrites, refusal: tagsAreRefused},
	{name: "tags changed later", needs: hasTags, run: tagsChangedLater},
	{name: "tags of uploads in parts", offers: takesParts, needs: hasTags, run: tagsOfUploads, refusal: tagsOfUploadsAreRefused},
}

func hasTags(c storage.Capabilities) bool { return c.Tagging }

// oddTags are as many as S3 allows, with what it allows.
var oddTags = map[string]string{
	"plain": "value", "empty": "", "with space": "a b", "p+l=u:s": "/@-._", "ünïcode": "ključ", "a": "1", "b": "2", "c": "3", "d": "4", "UPPER": "lower",
}

// wantTags fails the check unless key has these tags and says how many.
func (s *suite) wantTags(key string, want map[string]string, when string) {
	s.Helper()
	got, err := storage.GetTags(s.ctx, s.store, key)
	if err != nil || !maps.Equal(got, want) {
		s.Errorf("%s %q has the tags %q, %v; want %q", when, key, got, err, want)
	}
	info, err := s.store.Stat(s.ctx, key, storage.StatOptions{})
	if err != nil || info.TagCount != len(want) {
		s.Errorf("%s %q says that it has %d tags, %v; want %d", when, key, info.TagCount, err, len(want))
	}
}

func tagsOfWrites(s *suite) {
	data := noiseBytes(81, 100_000)
	info := s.setWith("tagged", data, storage.SetOptions{Tags: oddTags})
	if info.TagCount != len(oddTags) {
		s.Errorf("a write with %d tags says that it has %d", len(oddTags), info.TagCount)
	}
	s.want("tagged", data)
	s.wantTags("tagged", oddTags, "after a write with tags")
	_, read, err := storage.Get(s.ctx, s.store, "tagged")
	if err != nil || read.TagCount != len(oddTags) {
		s.Errorf("a read says that there are %d tags, %v", read.TagCount, err)
	}
	if s.store.Capabilities().PartialWrite {
		if _, err := s.store.SetPartial(s.ctx, "tagged", 5, storage.Bytes([]byte("changed"))); err != nil {
			s.Errorf("a partial write: %v", err)
		}
		s.wantTags("tagged", oddTags, "after a partial write")
	}
	s.set("tagged", data)
	s.wantTags("tagged", nil, "after a write without tags")
}

func tagsChangedLater(s *suite) {
	data := noiseBytes(82, 1000)
	s.setWith("key", data, storage.SetOptions{Metadata: map[string]string{"color": "blue"}})
	s.set("other", data)
	before, err := s.store.Stat(s.ctx, "key", storage.StatOptions{})
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	for _, tags := range []map[string]string{{"a": "1"}, oddTags, {"b": ""}, nil, nil} {
		if err := storage.SetTags(s.ctx, s.store, "key", tags); err != nil {
			s.Errorf("giving tags %q: %v", tags, err)
		}
		s.wantTags("key", tags, "after a change")
	}
	after, err := s.store.Stat(s.ctx, "key", storage.StatOptions{})
	// Members of a mux have each their own time.
	later := after.ServedBy == before.ServedBy && !after.ModTime.Equal(before.ModTime)
	if err != nil || after.ETag != before.ETag || later || !maps.Equal(after.Metadata, before.Metadata) {
		s.Errorf("tags changed %+v to %+v, %v", before, after, err)
	}
	s.want("key", data)
	s.wantTags("other", nil, "after tags of another key")

	s.wantCode(storage.SetTags(s.ctx, s.store, "missing", oddTags), storage.CodeKeyNotFound, "giving tags to nothing")
	s.wantCode(storage.SetTags(s.ctx, s.store, "missing", nil), storage.CodeKeyNotFound, "taking tags from nothing")
	_, err = storage.GetTags(s.ctx, s.store, "missing")
	s.wantCode(err, storage.CodeKeyNotFound, "reading tags of nothing")
	s.wantAbsent("missing", "after tags of nothing")
}

func tagsOfUploads(s *suite) {
	u := s.begin("key", storage.SetOptions{Tags: oddTags})
	data := noiseBytes(83, 1000)
	if _, err := u.complete(u.part(1, data)); err != nil {
		s.Fatalf("completing: %v", err)
	}
	s.want("key", data)
	s.wantTags("key", oddTags, "after an upload with tags")
}

func tagsAreRefused(s *suite) {
	_, err := storage.Set(s.ctx, s.store, "key", []byte("old"), storage.SetOptions{})
	_, refused := storage.Set(s.ctx, s.store, "key", []byte("new"), storage.SetOptions{Tags: oddTags})
	if err == nil { // else it is read-only, and says no more than that
		s.wantCode(refused, storage.CodeUnsupported, "writing with tags")
		s.want("key", []byte("old"))
	} else if refused == nil {
		s.Errorf("a write with tags succeeded")
	}
	s.wantCode(storage.SetTags(s.ctx, s.store, "key", oddTags), storage.CodeUnsupported, "giving tags")
	_, err = storage.GetTags(s.ctx, s.store, "key")
	s.wantCode(err, storage.CodeUnsupported, "reading tags")
}

func tagsOfUploadsAreRefused(s *suite) {
	_, err := s.store.(storage.Multipart).CreateUpload(s.ctx, "key", storage.SetOptions{Tags: oddTags})
	s.wantCode(err, storage.CodeUnsupported, "beginning an upload with tags")
}

package storagetest

import (
	"maps"
	"slices"

	"github.com/suaveplan/storagemux/internal/storage"
)

var copyChecks = []check{
	{name: "copies inside the store", offers: copies, run: copiesInside},
	{name: "copies under conditions", offers: copies, run: copiesUnderConditions},
	{name: "parts that are copies", offers: func(s storage.Storage) bool { return copies(s) && takesParts(s) }, run: partsThatAreCopies},
}

func copies(s storage.Storage) bool {
	_, is := s.(storage.Copier)
	return is
}

func copiesInside(s *suite) {
	c := s.store.(storage.Copier)
	opts := storage.SetOptions{Headers: storage.Headers{ContentType: "text/x-copy", CacheControl: "no-store"}, Metadata: map[string]string{"color": "blue"}}
	data := noiseBytes(71, 200_000)
	source := "dir/a source +%ü"
	s.setWith(source, data, opts)
	info, err := c.CopyObject(s.ctx, "copies/kept", source, storage.CopyOptions{})
	if err != nil {
		s.Fatalf("copying: %v", err)
	}
	s.want("copies/kept", data)
	stat, err := s.store.Stat(s.ctx, "copies/kept", storage.StatOptions{})
	if err != nil || stat.Headers != opts.Headers || !maps.Equal(stat.Metadata, opts.Metadata) {
		s.Errorf("the copy has headers %+v and metadata %v, %v", stat.Headers, stat.Metadata, err)
	}
	if info.Key != "copies/kept" || info.Size != stat.Size || info.ETag != stat.ETag || info.Headers != stat.Headers {
		s.Errorf("copying returned %+v, stat %+v", info, stat)
	}
	replaced := storage.CopyOptions{Replace: true, Headers: storage.Headers{ContentType: "text/plain"}, Metadata: map[string]string{"size": "l"}}
	for _, key := range []string{"copies/replaced", source} {
		if _, err := c.CopyObject(s.ctx, key, source, replaced); err != nil {
			s.Errorf("copying to %q with other metadata: %v", key, err)
			continue
		}
		s.want(key, data)
		stat, err := s.store.Stat(s.ctx, key, storage.StatOptions{})
		if err != nil || stat.Headers.ContentType != "text/plain" || key != source && stat.Headers.CacheControl != "" || !maps.Equal(stat.Metadata, replaced.Metadata) {
			s.Errorf("%q has headers %+v and metadata %v, %v", key, stat.Headers, stat.Metadata, err)
		}
	}
	if _, err := c.CopyObject(s.ctx, source, source, storage.CopyOptions{}); err != nil {
		s.Errorf("copying onto itself: %v", err)
	}
	s.set("empty", nil)
	if _, err := c.CopyObject(s.ctx, "copies/empty", "empty", storage.CopyOptions{}); err != nil {
		s.Errorf("copying an empty object: %v", err)
	}
	s.want("copies/empty", nil)
	_, err = c.CopyObject(s.ctx, "copies/none", "missing", storage.CopyOptions{})
	s.wantCode(err, storage.CodeKeyNotFound, "copying what is not there")
	s.wantAbsent("copies/none", "after a copy of nothing")
	s.wantNoDebris("copies")
}

func copiesUnderConditions(s *suite) {
	c := s.store.(storage.Copier)
	s.set("source", []byte("content"))
	stat, err := s.store.Stat(s.ctx, "source", storage.StatOptions{})
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	for name, source := range map[string]storage.Conditions{
		"If-Match":          {IfMatch: []string{"0123"}},
		"If-None-Match":     {IfNoneMatch: []string{stat.ETag}},
		"If-Modified-Since": {IfModifiedSince: stat.ModTime.AddDate(0, 0, 1)},
	} {
		_, err := c.CopyObject(s.ctx, "copy", "source", storage.CopyOptions{Source: source})
		s.wantCode(err, storage.CodePreconditionFailed, "copying with %s of the source", name)
	}
	s.wantAbsent("copy", "after copies that were refused")
	if _, err := c.CopyObject(s.ctx, "copy", "source", storage.CopyOptions{Source: storage.Conditions{IfMatch: []string{"0123", stat.ETag}}}); err != nil {
		s.Errorf("copying with If-Match: %v", err)
	}
	if !s.store.Capabilities().ConditionalWrite {
		_, err := c.CopyObject(s.ctx, "copy", "source", storage.CopyOptions{Conditions: create})
		s.wantCode(err, storage.CodeUnsupported, "copying under a condition")
		return
	}
	s.set("copy", []byte("there before"))
	s.set("empty", nil)
	for _, source := range []string{"source", "empty"} {
		_, err := c.CopyObject(s.ctx, "copy", source, storage.CopyOptions{Conditions: create})
		s.wantCode(err, storage.CodePreconditionFailed, "copying %s over an object", source)
		s.want("copy", []byte("there before"))
		if _, err := c.CopyObject(s.ctx, "copy of "+source, source, storage.CopyOptions{Conditions: create}); err != nil {
			s.Errorf("copying %s where nothing is: %v", source, err)
		}
	}
	s.want("copy of source", []byte("content"))
	s.want("copy of empty", nil)
	s.wantNoDebris("copies under conditions")
}

func partsThatAreCopies(s *suite) {
	c := s.store.(storage.Copier)
	data := noiseBytes(72, s.partBytes()+1000)
	s.set("source", data)
	stat, err := s.store.Stat(s.ctx, "source", storage.StatOptions{})
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	u := s.begin("key", storage.SetOptions{})
	var parts []storage.Part
	for number, r := range []*storage.Range{nil, {First: 500, Last: s.partBytes() + 499}, {First: -10}} {
		part, err := c.UploadPartCopy(s.ctx, u.key, u.id, number+1, "source", storage.CopyPartOptions{Range: r, Source: storage.Conditions{IfMatch: []string{stat.ETag}}})
		if err != nil {
			s.Fatalf("copying %v: %v", r, err)
		}
		parts = append(parts, part)
	}
	if parts[2].Size != 10 || parts[0].Size != stat.Size {
		s.Errorf("the parts are %+v", parts)
	}
	u.wantParts(parts...)
	_, err = c.UploadPartCopy(s.ctx, u.key, u.id, 3, "source", storage.CopyPartOptions{Source: storage.Conditions{IfMatch: []string{"0123"}}})
	s.wantCode(err, storage.CodePreconditionFailed, "copying with If-Match of another object")
	_, err = c.UploadPartCopy(s.ctx, u.key, u.id, 3, "missing", storage.CopyPartOptions{})
	s.wantCode(err, storage.CodeKeyNotFound, "copying what is not there")
	_, err = c.UploadPartCopy(s.ctx, u.key, "no-such-upload", 3, "source", storage.CopyPartOptions{})
	s.wantCode(err, storage.CodeUploadNotFound, "copying into no upload")
	_, err = c.UploadPartCopy(s.ctx, u.key, u.id, 3, "source", storage.CopyPartOptions{Range: &storage.Range{First: stat.Size, Last: stat.Size + 1}})
	s.wantCode(err, storage.CodeInvalidRange, "copying beyond the end")
	if _, err := u.complete(parts...); err != nil {
		s.Fatalf("completing: %v", err)
	}
	s.want("key", slices.Concat(data, data[500:s.partBytes()+500], data[len(data)-10:]))
	s.wantNoDebris("parts that are copies")
}

package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

var multipartChecks = []check{
	{name: "uploads in parts", offers: takesParts, run: uploadsInParts},
	{name: "parts in any order and at once", offers: takesParts, run: partsInAnyOrder},
	{name: "parts that are cut leave the old part", offers: takesParts, run: cutParts},
	{name: "parts that do not fit are refused", offers: takesParts, run: partsThatDoNotFit},
	{name: "uploads that are gone", offers: takesParts, run: uploadsThatAreGone},
	{name: "parts and uploads in pages", offers: takesParts, run: partsAndUploadsInPages},
	{name: "completing under a condition", offers: takesParts, needs: hasConditional, run: conditionalComplete, refusal: conditionalCompleteIsRefused},
	{name: "uploads go on through another handle", offers: takesParts, run: uploadsThroughAnotherHandle},
}

func takesParts(s storage.Storage) bool {
	_, is := s.(storage.Multipart)
	return is
}

// upload is an upload of one key.
type upload struct {
	*suite
	storage.Multipart
	key, id string
}

func (s *suite) begin(key string, opts storage.SetOptions) *upload {
	s.Helper()
	u := &upload{s, s.store.(storage.Multipart), key, ""}
	var err error
	if u.id, err = u.CreateUpload(s.ctx, key, opts); err != nil {
		s.Fatalf("beginning an upload of %q: %v", key, err)
	}
	if u.id == "" || len(u.id) > storage.MaxUploadIDBytes {
		s.Errorf("the id of an upload has %d bytes", len(u.id))
	}
	return u
}

func (u *upload) part(number int, data []byte) storage.Part {
	u.Helper()
	part, err := u.UploadPart(u.ctx, u.key, u.id, number, storage.Stream(bytes.NewReader(data), int64(len(data))), storage.SetOptions{})
	if err != nil {
		u.Fatalf("part %d of %q: %v", number, u.key, err)
	}
	if part.Number != number || part.Size != int64(len(data)) || part.ETag == "" || strings.Contains(part.ETag, `"`) {
		u.Errorf("part %d of %d bytes came back as %+v", number, len(data), part)
	}
	return storage.Part{Number: number, ETag: part.ETag} // all that a client keeps
}

func (u *upload) complete(parts ...storage.Part) (storage.Info, error) {
	return u.CompleteUpload(u.ctx, u.key, u.id, parts, storage.SetOptions{})
}

func (u *upload) abort() {
	u.Helper()
	if err := u.AbortUpload(u.ctx, u.key, u.id); err != nil {
		u.Errorf("aborting: %v", err)
	}
}

// wantParts fails the check unless the upload has exactly the parts.
func (u *upload) wantParts(want ...storage.Part) {
	u.Helper()
	parts, more, err := u.ListParts(u.ctx, u.key, u.id, 0, storage.MaxListLimit)
	if err != nil || more {
		u.Errorf("listing parts: more %t, %v", more, err)
	}
	for i := range parts {
		parts[i] = storage.Part{Number: parts[i].Number, ETag: parts[i].ETag}
	}
	if !slices.EqualFunc(parts, want, func(a, b storage.Part) bool { return a.Number == b.Number && a.ETag == b.ETag }) {
		u.Errorf("the parts are %+v, want %+v", parts, want)
	}
}

// wantAbsent fails the check if there is an object under key.
func (s *suite) wantAbsent(key, when string) {
	s.Helper()
	_, err := s.store.Stat(s.ctx, key, storage.StatOptions{})
	s.wantCode(err, storage.CodeKeyNotFound, "stat of %q %s", key, when)
	if entries, _ := s.list(storage.ListOptions{}); slices.Contains(entries, key) {
		s.Errorf("%q is listed %s", key, when)
	}
}

func uploadsInParts(s *suite) {
	opts := storage.SetOptions{Headers: storage.Headers{ContentType: "text/x-parts", CacheControl: "no-store"}, Metadata: map[string]string{"color": "blue"}}
	first, last := noiseBytes(21, s.partBytes()), noiseBytes(22, 1000)
	u := s.begin("dir/new key", opts)
	one, two := u.part(1, first), u.part(7, last)
	s.wantAbsent(u.key, "before it is complete")
	u.wantParts(one, two)
	info, err := u.complete(one, two)
	if err != nil {
		s.Fatalf("completing: %v", err)
	}
	s.want(u.key, slices.Concat(first, last))
	stat, err := s.store.Stat(s.ctx, u.key, storage.StatOptions{})
	if err != nil || info.Size != stat.Size || info.Key != u.key || info.ETag != "" && info.ETag != stat.ETag {
		s.Errorf("completing returned %+v, stat %+v, %v", info, stat, err)
	}
	if s.store.Capabilities().Metadata && (stat.Headers != opts.Headers || !maps.Equal(stat.Metadata, opts.Metadata)) {
		s.Errorf("the object has headers %+v and metadata %v", stat.Headers, stat.Metadata)
	}

	small := s.begin("dir/new key", storage.SetOptions{})
	only := small.part(1, []byte("one small part"))
	s.want(u.key, slices.Concat(first, last))
	if _, err := small.complete(only); err != nil {
		s.Errorf("completing over an object: %v", err)
	}
	s.want(u.key, []byte("one small part"))
	if _, err := small.complete(only); err != nil {
		s.Errorf("completing once more: %v", err)
	}
	s.set(u.key, []byte("somebody else's"))
	if _, err := small.complete(only); storage.CodeOf(err) != storage.CodeUploadNotFound {
		s.Errorf("completing once more when something else is there: got %v, want UPLOAD_NOT_FOUND", err)
	}
	s.want(u.key, []byte("somebody else's"))

	aborted := s.begin("never", storage.SetOptions{})
	part := aborted.part(1, []byte("x"))
	aborted.abort()
	aborted.abort()
	_, err = aborted.complete(part)
	s.wantCode(err, storage.CodeUploadNotFound, "completing what was aborted")
	s.wantAbsent("never", "after its upload was aborted")
	s.wantNoDebris("uploads in parts")
}

func partsInAnyOrder(s *suite) {
	const count = 10
	u := s.begin("key", storage.SetOptions{})
	var whole []byte
	contents := make([][]byte, count)
	for i := range contents {
		contents[i] = noiseBytes(uint64(30+i), s.partBytes())
		whole = append(whole, contents[i]...)
	}
	parts := make([]storage.Part, count)
	var all sync.WaitGroup
	turn := make(chan int, count)
	for _, i := range rand.Perm(count) {
		turn <- i
	}
	close(turn)
	for range 4 {
		all.Go(func() {
			for i := range turn {
				data := contents[i]
				part, err := u.UploadPart(s.ctx, u.key, u.id, i+1, storage.Stream(bytes.NewReader(data), int64(len(data))), storage.SetOptions{})
				if err != nil {
					s.Errorf("part %d: %v", i+1, err)
				}
				parts[i] = part
			}
		})
	}
	all.Wait()
	u.wantParts(parts...)
	if _, err := u.complete(parts...); err != nil {
		s.Fatalf("completing: %v", err)
	}
	s.want("key", whole)
	s.wantNoDebris("parts in any order")
}

func cutParts(s *suite) {
	u := s.begin("key", storage.SetOptions{})
	old := noiseBytes(41, 300_000)
	kept := u.part(1, old)
	for _, size := range []int64{10, 1 << 17, 3 << 20} {
		content := func(n int64) io.Reader { return noise(uint64(size), n) }
		for name, body := range map[string]storage.Body{
			"one byte short":                   storage.Stream(content(size-1), size),
			"half":                             storage.Stream(content(size/2), size),
			"one byte long":                    storage.Stream(content(size+1), size),
			"error at the end":                 storage.Stream(io.MultiReader(content(size), failing{}), size),
			"error at the end, unknown length": storage.Stream(io.MultiReader(content(size), failing{}), -1),
		} {
			_, err := u.UploadPart(s.ctx, u.key, u.id, 1, body, storage.SetOptions{})
			s.wantCode(err, storage.CodeInvalidBody, "a part of %d bytes, %s", size, name)
			if strings.HasPrefix(name, "error") && !errors.Is(err, errBroken) {
				s.Errorf("%d bytes, %s: the error %v does not tell why", size, name, err)
			}
		}
		wrong := storage.SetOptions{Checksums: storage.Checksums{MD5: make([]byte, 16)}}
		_, err := u.UploadPart(s.ctx, u.key, u.id, 1, storage.Stream(content(size), size), wrong)
		s.wantCode(err, storage.CodeInvalidBody, "a part of %d bytes with a wrong checksum", size)

		ctx, cancel := context.WithCancel(s.ctx)
		done := make(chan error, 1)
		go func() {
			_, err := u.UploadPart(ctx, u.key, u.id, 1, endless{size, 64 << 20}, storage.SetOptions{})
			done <- err
		}()
		time.Sleep(20 * time.Millisecond)
		cancelled := time.Now()
		cancel()
		if err := <-done; storage.Classify(err) != storage.ClassAbort || time.Since(cancelled) > soon {
			s.Errorf("a part cancelled after %d bytes: got %v after %s, want an abort at once", size, err, time.Since(cancelled))
		}
		u.wantParts(kept)
	}
	if _, err := u.complete(kept); err != nil {
		s.Errorf("completing: %v", err)
	}
	s.want("key", old)
	s.wantNoDebris("cut parts")
}

func partsThatDoNotFit(s *suite) {
	s.set("key", []byte("the old object"))
	u := s.begin("key", storage.SetOptions{})
	before := u.part(1, noiseBytes(50, s.partBytes()))
	one := u.part(1, noiseBytes(51, s.partBytes()))
	two := u.part(2, []byte("two"))
	u.wantParts(one, two)
	for name, parts := range map[string][]storage.Part{
		"none":                       {},
		"one that is missing":        {one, two, {Number: 3, ETag: two.ETag}},
		"the wrong way round":        {two, one},
		"the same twice":             {one, one},
		"a tag that is wrong":        {one, {Number: 2, ETag: one.ETag}},
		"a part that was replaced":   {before, two},
		"a tag that is missing":      {one, {Number: 2}},
		"a number that is none":      {{Number: 0, ETag: one.ETag}},
		"a number that is too large": {{Number: storage.MaxParts + 1, ETag: one.ETag}},
	} {
		_, err := u.complete(parts...)
		s.wantCode(err, storage.CodeInvalidPart, "completing with %s", name)
	}
	s.want("key", []byte("the old object"))
	for _, number := range []int{0, -1, storage.MaxParts + 1} {
		_, err := u.UploadPart(s.ctx, u.key, u.id, number, storage.Bytes([]byte("x")), storage.SetOptions{})
		if storage.Classify(err) != storage.ClassSemantic {
			s.Errorf("part %d: got %v, want a semantic error", number, err)
		}
	}
	if _, err := u.complete(one); err != nil { // leaving a part out is allowed
		s.Errorf("completing with one of two: %v", err)
	}
	s.want("key", noiseBytes(51, s.partBytes()))
	s.wantNoDebris("parts that do not fit")
}

func uploadsThatAreGone(s *suite) {
	u := s.begin("key", storage.SetOptions{})
	part := u.part(1, []byte("content"))
	if _, err := u.complete(part); err != nil {
		s.Fatalf("completing: %v", err)
	}
	other := s.begin("other", storage.SetOptions{})
	m := u.Multipart
	for name, which := range map[string][2]string{
		"one that was completed":     {u.key, u.id},
		"one of another key":         {"key", other.id},
		"one that never was":         {"key", strings.Repeat("0", len(u.id))},
		"one with an odd name":       {"key", "../../x y/\x01"},
		"one with an empty name":     {"key", ""},
		"one with a long name":       {"key", strings.Repeat("x", 200)},
		"one that is a reserved key": {"key", storage.ReservedParts},
	} {
		key, id := which[0], which[1]
		_, err := m.UploadPart(s.ctx, key, id, 1, storage.Bytes([]byte("x")), storage.SetOptions{})
		s.wantCode(err, storage.CodeUploadNotFound, "a part of %s", name)
		_, _, err = m.ListParts(s.ctx, key, id, 0, 10)
		s.wantCode(err, storage.CodeUploadNotFound, "listing the parts of %s", name)
		if id != u.id { // which may succeed once more
			_, err = m.CompleteUpload(s.ctx, key, id, []storage.Part{{Number: 1, ETag: "0123"}}, storage.SetOptions{})
			s.wantCode(err, storage.CodeUploadNotFound, "completing %s", name)
		}
		// A store may tell an id that it never gave from one that it forgot.
		err = m.AbortUpload(s.ctx, key, id)
		if code := storage.CodeOf(err); err != nil && (code != storage.CodeUploadNotFound || id == u.id) {
			s.Errorf("aborting %s: %v", name, err)
		}
	}
	s.want("key", []byte("content"))
	other.part(1, []byte("still there"))
	other.abort()
	s.wantNoDebris("uploads that are gone")
}

// listUploads returns the uploads of all pages and their entries: the keys of the
// uploads, and the prefixes.
func (s *suite) listUploads(opts storage.ListUploadsOptions) (uploads []storage.Upload, entries []string) {
	s.Helper()
	for range 1000 {
		page, err := s.store.(storage.Multipart).ListUploads(s.ctx, opts)
		if err != nil {
			s.Fatalf("listing uploads %+v: %v", opts, err)
		}
		if n := len(page.Uploads) + len(page.Prefixes); n > opts.Limit {
			s.Errorf("listing uploads %+v: %d entries in one page", opts, n)
		}
		keys := slices.Clone(page.Prefixes)
		for _, u := range page.Uploads {
			keys = append(keys, u.Key)
			if age := time.Since(u.Initiated); age < -time.Minute || age > time.Hour {
				s.Errorf("an upload is said to have begun at %s", u.Initiated)
			}
		}
		slices.Sort(keys)
		uploads, entries = append(uploads, page.Uploads...), append(entries, keys...)
		if page.NextKey == "" {
			return uploads, entries
		}
		opts.AfterKey, opts.AfterID = page.NextKey, page.NextID
	}
	s.Fatalf("listing uploads %+v: no end of pages", opts)
	return nil, nil
}

// uploadsInPages checks the listing of the uploads of keys. It may be that a
// store cannot know them.
func (s *suite) uploadsInPages(keys []string) {
	s.Helper()
	_, err := s.store.(storage.Multipart).ListUploads(s.ctx, storage.ListUploadsOptions{})
	if storage.CodeOf(err) == storage.CodeUnsupported {
		return
	}
	for _, tt := range []struct {
		opts storage.ListUploadsOptions
		want []string
	}{
		{storage.ListUploadsOptions{}, keys},
		{storage.ListUploadsOptions{Prefix: "b"}, keys[1:4]},
		{storage.ListUploadsOptions{Delimiter: "/"}, slices.Concat(keys[:4], []string{"dir/"}, keys[6:])},
		{storage.ListUploadsOptions{Prefix: "dir/", Delimiter: "/"}, keys[4:6]},
		{storage.ListUploadsOptions{AfterKey: "b"}, keys[4:]},
		{storage.ListUploadsOptions{Prefix: "none"}, nil},
	} {
		for _, limit := range []int{1, 2, 3, 100} {
			tt.opts.Limit = limit
			uploads, got := s.listUploads(tt.opts)
			want := tt.want
			if s.RepeatsUploads {
				got, want = slices.Compact(got), slices.Compact(slices.Clone(want))
			}
			if !slices.Equal(got, want) {
				s.Errorf("listing uploads %+v: got %q, want %q", tt.opts, got, want)
			}
			ids := map[string]bool{}
			for _, u := range uploads {
				if _, _, err := s.store.(storage.Multipart).ListParts(s.ctx, u.Key, u.ID, 0, 1); err != nil || ids[u.ID] {
					s.Errorf("listing uploads %+v: the id %q is of no use or was listed before: %v", tt.opts, u.ID, err)
				}
				ids[u.ID] = true
			}
		}
	}
}

func partsAndUploadsInPages(s *suite) {
	var uploads []*upload
	keys := []string{"a", "b", "b", "b", "dir/x", "dir/y", "z"}
	for _, key := range keys {
		uploads = append(uploads, s.begin(key, storage.SetOptions{}))
	}
	s.uploadsInPages(keys)
	u := uploads[0]
	var want []storage.Part
	for _, number := range []int{3, 1, 20, 10000, 2} {
		want = append(want, u.part(number, fmt.Append(nil, "part ", number)))
	}
	slices.SortFunc(want, func(a, b storage.Part) int { return a.Number - b.Number })
	for limit := 1; limit < 7; limit++ {
		var got []storage.Part
		for more := true; more && len(got) < 10; {
			after := 0
			if len(got) > 0 {
				after = got[len(got)-1].Number
			}
			var page []storage.Part
			var err error
			if page, more, err = u.ListParts(s.ctx, u.key, u.id, after, limit); err != nil {
				s.Fatalf("listing parts: %v", err)
			}
			if len(page) > limit || more && len(page) == 0 {
				s.Errorf("a page of %d parts of at most %d, more %t", len(page), limit, more)
			}
			got = append(got, page...)
		}
		for i, p := range got {
			if i >= len(want) || p.Number != want[i].Number || p.ETag != want[i].ETag || p.Size != int64(len(fmt.Sprint("part ", p.Number))) || p.ModTime.IsZero() {
				s.Errorf("by %d: part %d is %+v, want %+v", limit, i, p, want)
				break
			}
		}
		if len(got) != len(want) {
			s.Errorf("by %d: %d parts, want %d", limit, len(got), len(want))
		}
	}
	for _, u := range uploads {
		u.abort()
	}
	page, err := u.ListUploads(s.ctx, storage.ListUploadsOptions{})
	if storage.CodeOf(err) != storage.CodeUnsupported && (err != nil || len(page.Uploads) > 0) {
		s.Errorf("after all were aborted: %+v, %v", page, err)
	}
	s.wantNoDebris("uploads that were aborted")
}

func conditionalComplete(s *suite) {
	old := s.set("key", []byte("old"))
	stat, err := s.store.Stat(s.ctx, "key", storage.StatOptions{})
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	u := s.begin("key", storage.SetOptions{})
	part := u.part(1, []byte("new"))
	with := func(c storage.Conditions) error {
		_, err := u.CompleteUpload(s.ctx, u.key, u.id, []storage.Part{part}, storage.SetOptions{Conditions: c})
		return err
	}
	s.wantCode(with(create), storage.CodePreconditionFailed, "completing over an object that must not be there")
	s.wantCode(with(storage.Conditions{IfMatch: []string{"0123"}}), storage.CodePreconditionFailed, "completing over another object")
	s.want("key", []byte("old"))
	if err := with(storage.Conditions{IfMatch: []string{"0123", stat.ETag}}); err != nil {
		s.Errorf("completing over the object %+v: %v", old, err)
	}
	s.want("key", []byte("new"))

	u = s.begin("fresh", storage.SetOptions{})
	part = u.part(1, []byte("content"))
	if err := with(create); err != nil {
		s.Errorf("completing where there must be nothing: %v", err)
	}
	if err := with(create); err != nil {
		s.Errorf("completing once more: %v", err)
	}
	s.want("fresh", []byte("content"))
	s.wantNoDebris("conditional completes")
}

func conditionalCompleteIsRefused(s *suite) {
	u := s.begin("key", storage.SetOptions{})
	part := u.part(1, []byte("new"))
	_, err := u.CompleteUpload(s.ctx, u.key, u.id, []storage.Part{part}, storage.SetOptions{Conditions: create})
	s.wantCode(err, storage.CodeUnsupported, "completing under a condition")
	s.wantAbsent("key", "after a refused complete")
	u.abort()
}

func uploadsThroughAnotherHandle(s *suite) {
	if s.Reopen == nil {
		return
	}
	first, second := noiseBytes(61, s.partBytes()), []byte("second")
	u := s.begin("key", storage.SetOptions{Headers: storage.Headers{ContentType: "text/plain"}})
	one := u.part(1, first)
	other := s.Reopen(s.T, s.store)
	if closer, is := other.(io.Closer); is {
		defer closer.Close()
	}
	there := &upload{s, other.(storage.Multipart), u.key, u.id}
	there.wantParts(one)
	two := there.part(2, second)
	u.wantParts(one, two)
	if _, err := there.complete(one, two); err != nil {
		s.Errorf("completing: %v", err)
	}
	if _, err := u.complete(one, two); err != nil {
		s.Errorf("completing here once more: %v", err)
	}
	s.want("key", slices.Concat(first, second))
	_, err := u.UploadPart(s.ctx, u.key, u.id, 3, storage.Bytes([]byte("late")), storage.SetOptions{})
	s.wantCode(err, storage.CodeUploadNotFound, "a part of what was completed elsewhere")
	s.wantNoDebris("an upload through two handles")
}

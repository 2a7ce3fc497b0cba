package storagetest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

var contentChecks = []check{
	{name: "round trips of every size", run: roundTrips},
	{name: "stat, get and list agree", run: statGetAndListAgree},
	{name: "overwrites replace everything", run: overwritesReplaceEverything},
	{name: "what is not there is not found", run: missingIsNotFound},
	{name: "delete", run: deletes},
	{name: "standard headers and metadata", needs: hasMetadata, run: headersAndMetadata, refusal: contentTypeAtMost},
	{name: "checksums are verified", run: checksumsAreVerified},
	{name: "readers see the old object or the new", run: readersSeeOldOrNew, gaps: true},
	{name: "many at once", run: manyAtOnce},
}

func hasMetadata(c storage.Capabilities) bool { return c.Metadata }

func roundTrips(s *suite) {
	sizes := []int64{0, 1, 2, 1<<16 - 1, 1 << 16, 1<<16 + 1, 1<<20 + 1, 5<<20 + 1, 8 << 20, 32<<20 + 3, 100 << 20}
	for i, size := range sizes {
		if size > s.MaxBody {
			break
		}
		for _, promised := range []int64{size, -1} {
			key := fmt.Sprintf("size-%d-promised-%d", size, promised)
			hash := sha256.New()
			body := storage.Stream(io.TeeReader(noise(uint64(i), size), hash), promised)
			info, err := s.store.SetStream(s.ctx, key, body, storage.SetOptions{})
			if err != nil {
				s.Errorf("%s: storing: %v", key, err)
				continue
			}
			if info.Size != size || info.Key != key {
				s.Errorf("%s: storing returned size %d, key %q", key, info.Size, info.Key)
			}
			obj, err := s.store.GetStream(s.ctx, key, storage.GetOptions{})
			if err != nil {
				s.Errorf("%s: reading: %v", key, err)
				continue
			}
			got := sha256.New()
			n, err := io.Copy(got, obj.Body)
			if err := obj.Body.Close(); err != nil {
				s.Errorf("%s: closing: %v", key, err)
			}
			if err != nil || n != size || !bytes.Equal(got.Sum(nil), hash.Sum(nil)) {
				s.Errorf("%s: read %d bytes, error %v, same content: %t", key, n, err, bytes.Equal(got.Sum(nil), hash.Sum(nil)))
			}
			if obj.Offset != 0 || obj.Length != size || obj.Size != size {
				s.Errorf("%s: offset %d, length %d, size %d", key, obj.Offset, obj.Length, obj.Size)
			}
			if err := s.store.Delete(s.ctx, key); err != nil {
				s.Errorf("%s: deleting: %v", key, err)
			}
		}
	}
	s.wantNoDebris("round trips")
}

func statGetAndListAgree(s *suite) {
	began := time.Now().Add(-2 * time.Second)
	written := s.set("dir/key", []byte("content"))
	stat, err := s.store.Stat(s.ctx, "dir/key", storage.StatOptions{})
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	_, got, err := storage.Get(s.ctx, s.store, "dir/key")
	if err != nil {
		s.Fatalf("get: %v", err)
	}
	page, err := s.store.List(s.ctx, storage.ListOptions{})
	if err != nil || len(page.Objects) != 1 {
		s.Fatalf("list: %v, %d objects", err, len(page.Objects))
	}
	for name, info := range map[string]storage.Info{"get": got, "list": page.Objects[0]} {
		sameTag := info.ETag == stat.ETag || name == "list" && info.ETag == ""
		if info.Key != "dir/key" || info.Size != 7 || !sameTag {
			s.Errorf("%s gives key %q, size %d, etag %q; stat gives etag %q", name, info.Key, info.Size, info.ETag, stat.ETag)
		}
		if d := info.ModTime.Sub(stat.ModTime).Abs(); d >= time.Second {
			s.Errorf("%s gives a time %s away from stat's", name, d)
		}
	}
	if stat.Key != "dir/key" || stat.Size != 7 {
		s.Errorf("stat gives key %q, size %d", stat.Key, stat.Size)
	}
	if stat.ModTime.Before(began) || stat.ModTime.After(time.Now().Add(2*time.Second)) {
		s.Errorf("the object was written at %s, says stat", stat.ModTime)
	}
	if written.ETag != "" && written.ETag != stat.ETag {
		s.Errorf("storing returned the etag %q, stat gives %q", written.ETag, stat.ETag)
	}
	if ok, err := storage.Has(s.ctx, s.store, "dir/key"); !ok || err != nil {
		s.Errorf("has: %t, %v", ok, err)
	}
}

func overwritesReplaceEverything(s *suite) {
	first := s.setWith("key", noiseBytes(1, 1<<20), storage.SetOptions{
		Headers: storage.Headers{ContentType: "text/plain", CacheControl: "no-store"}, Metadata: map[string]string{"old": "1"}})
	second := s.setWith("key", []byte("short"), storage.SetOptions{Headers: storage.Headers{ContentType: "text/html"}})
	s.want("key", []byte("short"))
	stat, err := s.store.Stat(s.ctx, "key", storage.StatOptions{})
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	if len(stat.Metadata) != 0 || stat.Headers.CacheControl != "" {
		s.Errorf("the old object's metadata %v and headers %+v are still there", stat.Metadata, stat.Headers)
	}
	if first.ETag != "" && first.ETag == second.ETag {
		s.Errorf("two contents share the etag %q", first.ETag)
	}
	s.set("key", nil)
	s.want("key", nil)
	s.wantNoDebris("overwriting")
}

func missingIsNotFound(s *suite) {
	s.set("there/key", []byte("x"))
	for _, key := range []string{"key", "there", "there/", "there/key2", "there/key/below"} {
		_, err := s.store.GetStream(s.ctx, key, storage.GetOptions{})
		s.wantCode(err, storage.CodeKeyNotFound, "get of %q", key)
		_, err = s.store.Stat(s.ctx, key, storage.StatOptions{})
		s.wantCode(err, storage.CodeKeyNotFound, "stat of %q", key)
		if ok, err := storage.Has(s.ctx, s.store, key); ok || err != nil {
			s.Errorf("has of %q: %t, %v", key, ok, err)
		}
		_, _, err = s.readRange(key, storage.Range{First: 1, Last: 2})
		if storage.CodeOf(err) != storage.CodeKeyNotFound && s.store.Capabilities().Range {
			s.wantCode(err, storage.CodeKeyNotFound, "range of %q", key)
		}
	}
}

func deletes(s *suite) {
	for _, key := range []string{"never/was", "x"} {
		if err := s.store.Delete(s.ctx, key); err != nil {
			s.Errorf("delete of what is not there: %v", err)
		}
	}
	s.set("a/b/1", []byte("1"))
	s.set("a/b/2", []byte("2"))
	if err := s.store.Delete(s.ctx, "a/b/1"); err != nil {
		s.Errorf("delete: %v", err)
	}
	_, err := s.store.Stat(s.ctx, "a/b/1", storage.StatOptions{})
	s.wantCode(err, storage.CodeKeyNotFound, "stat of what was deleted")
	if err := s.store.Delete(s.ctx, "a/b"); err != nil {
		s.Errorf("delete of a key that is only a prefix: %v", err)
	}
	s.want("a/b/2", []byte("2"))
	if err := s.store.Delete(s.ctx, "a/b/2"); err != nil {
		s.Errorf("delete: %v", err)
	}
	if entries, _ := s.list(storage.ListOptions{Delimiter: "/"}); len(entries) > 0 {
		s.Errorf("after all is deleted, there is %q", entries)
	}
	if !s.FoldersStay {
		s.set("a", []byte("not a folder"))
		s.want("a", []byte("not a folder"))
	}
}

func headersAndMetadata(s *suite) {
	headers := storage.Headers{
		ContentType:        `text/plain; charset="utf-8"`,
		CacheControl:       "max-age=60, public",
		ContentDisposition: `attachment; filename="a b.txt"`,
		ContentEncoding:    "gzip",
		ContentLanguage:    "de, en",
		Expires:            "Thu, 01 Dec 2033 16:00:00 GMT",
	}
	metadata := map[string]string{"one": "1", "with-dash": "a  b=c;d", "number": "17"}
	s.setWith("key", []byte("content"), storage.SetOptions{Headers: headers, Metadata: maps.Clone(metadata)})
	stat, err := s.store.Stat(s.ctx, "key", storage.StatOptions{})
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	_, got, err := storage.Get(s.ctx, s.store, "key")
	if err != nil {
		s.Fatalf("get: %v", err)
	}
	for name, info := range map[string]storage.Info{"stat": stat, "get": got} {
		if info.Headers != headers {
			s.Errorf("%s gives the headers %+v, want %+v", name, info.Headers, headers)
		}
		if !maps.Equal(info.Metadata, metadata) {
			s.Errorf("%s gives the metadata %v, want %v", name, info.Metadata, metadata)
		}
	}
	s.set("plain", []byte("content"))
	if stat, err = s.store.Stat(s.ctx, "plain", storage.StatOptions{}); err != nil || len(stat.Metadata) != 0 {
		s.Errorf("an object without metadata: %v, %v", stat.Metadata, err)
	}
}

func contentTypeAtMost(s *suite) {
	s.setWith("key.txt", []byte("content"), storage.SetOptions{
		Headers: storage.Headers{ContentType: "text/plain"}, Metadata: map[string]string{"one": "1"}})
	stat, err := s.store.Stat(s.ctx, "key.txt", storage.StatOptions{})
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	if len(stat.Metadata) != 0 {
		s.Errorf("a store without metadata returns %v", stat.Metadata)
	}
}

func checksumsAreVerified(s *suite) {
	data := noiseBytes(1, 200_000)
	sum := sha256.Sum256(data)
	s.set("key", []byte("old"))
	wrong := sum
	wrong[0] ^= 1
	_, err := storage.Set(s.ctx, s.store, "key", data, storage.SetOptions{Checksums: storage.Checksums{SHA256: wrong[:]}})
	s.wantCode(err, storage.CodeInvalidBody, "storing under a wrong SHA-256")
	s.want("key", []byte("old"))
	s.wantNoDebris("a wrong checksum")
	s.setWith("key", data, storage.SetOptions{Checksums: storage.Checksums{SHA256: sum[:]}})
	s.want("key", data)
	stat, err := s.store.Stat(s.ctx, "key", storage.StatOptions{})
	if err != nil || stat.Checksums.SHA256 != nil && !bytes.Equal(stat.Checksums.SHA256, sum[:]) {
		s.Errorf("stat gives the SHA-256 %x, %v", stat.Checksums.SHA256, err)
	}
}

func readersSeeOldOrNew(s *suite) {
	const size = 256 << 10
	contents := [][]byte{bytes.Repeat([]byte("a"), size), bytes.Repeat([]byte("b"), size/2)}
	s.set("key", contents[0])
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 20 {
			if _, err := storage.Set(s.ctx, s.store, "key", contents[i%2], storage.SetOptions{}); err != nil {
				s.Errorf("storing: %v", err)
			}
		}
	})
	for range 20 {
		got, info, err := storage.Get(s.ctx, s.store, "key")
		if s.OverwritesHaveGaps && storage.CodeOf(err) == storage.CodeKeyNotFound {
			continue
		}
		if err != nil {
			s.Errorf("reading while it is overwritten: %v", err)
			continue
		}
		if info.Size != int64(len(got)) || !bytes.Equal(got, contents[0]) && !bytes.Equal(got, contents[1]) {
			s.Errorf("a reader saw %d bytes of %d, neither the old object nor the new", len(got), info.Size)
		}
	}
	writer.Wait()
}

func manyAtOnce(s *suite) {
	var workers sync.WaitGroup
	for w := range 8 {
		workers.Go(func() {
			for i := range 6 {
				key, data := fmt.Sprintf("w%d/%d", w, i%3), noiseBytes(uint64(w), int64(1000*w+i))
				if _, err := storage.Set(s.ctx, s.store, key, data, storage.SetOptions{}); err != nil {
					s.Errorf("storing %q: %v", key, err)
					continue
				}
				if got, _, err := storage.Get(s.ctx, s.store, key); err != nil || !bytes.Equal(got, data) {
					s.Errorf("reading %q: %d bytes, %v", key, len(got), err)
				}
				if _, err := s.store.List(s.ctx, storage.ListOptions{Prefix: "w", Delimiter: "/"}); err != nil {
					s.Errorf("listing: %v", err)
				}
				if i%2 == 1 {
					if err := s.store.Delete(s.ctx, key); err != nil {
						s.Errorf("deleting %q: %v", key, err)
					}
				}
			}
		})
	}
	workers.Wait()
	s.wantNoDebris("many at once")
}

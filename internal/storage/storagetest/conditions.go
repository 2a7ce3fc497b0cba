package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

var conditionChecks = []check{
	{name: "conditional reads", run: conditionalReads},
	{name: "conditional create", needs: hasConditional, run: conditionalCreate, refusal: conditionsAreRefused},
	{name: "one of many creators wins", needs: hasConditional, run: oneCreatorWins},
	{name: "conditional update", needs: hasConditional, run: conditionalUpdate},
	{name: "no update is lost", needs: hasConditional, run: noUpdateIsLost},
	{name: "conditional delete", needs: hasConditional, run: conditionalDelete, refusal: conditionalDeleteIsRefused},
}

func hasConditional(c storage.Capabilities) bool { return c.ConditionalWrite }

func conditionalReads(s *suite) {
	s.set("key", []byte("content"))
	stat, err := s.store.Stat(s.ctx, "key", storage.StatOptions{})
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	// Servers tell times to the second, and ignore those that are to come.
	hour, later := time.Hour, stat.ModTime.Truncate(time.Second).Add(time.Second)
	time.Sleep(time.Until(later) + 10*time.Millisecond)
	type test struct {
		name string
		c    storage.Conditions
		want storage.Code
	}
	tests := []test{
		{"If-Match: *", storage.Conditions{IfMatch: []string{"*"}}, ""},
		{"If-Match: other", storage.Conditions{IfMatch: []string{"0123"}}, storage.CodePreconditionFailed},
		{"If-None-Match: other", storage.Conditions{IfNoneMatch: []string{"0123"}}, ""},
		{"If-None-Match: *", storage.Conditions{IfNoneMatch: []string{"*"}}, storage.CodeNotModified},
		{"If-Modified-Since before", storage.Conditions{IfModifiedSince: stat.ModTime.Add(-hour)}, ""},
		{"If-Modified-Since after", storage.Conditions{IfModifiedSince: later}, storage.CodeNotModified},
		{"If-Unmodified-Since before", storage.Conditions{IfUnmodifiedSince: stat.ModTime.Add(-hour)}, storage.CodePreconditionFailed},
		{"If-Unmodified-Since after", storage.Conditions{IfUnmodifiedSince: later}, ""},
	}
	if strong := stat.ETag != "" && !strings.HasPrefix(stat.ETag, "W/"); strong {
		tests = append(tests,
			test{"If-Match: same", storage.Conditions{IfMatch: []string{stat.ETag}}, ""},
			test{"If-Match: list", storage.Conditions{IfMatch: []string{"0123", stat.ETag}}, ""},
			test{"If-None-Match: same", storage.Conditions{IfNoneMatch: []string{stat.ETag}}, storage.CodeNotModified},
		)
	}
	for _, tt := range tests {
		_, err := s.store.Stat(s.ctx, "key", storage.StatOptions{Conditions: tt.c})
		s.wantCode(err, tt.want, "stat with %s", tt.name)
		obj, err := s.store.GetStream(s.ctx, "key", storage.GetOptions{Conditions: tt.c})
		s.wantCode(err, tt.want, "get with %s", tt.name)
		if err == nil {
			obj.Body.Close()
		}
	}
	_, err = s.store.Stat(s.ctx, "missing", storage.StatOptions{Conditions: storage.Conditions{IfNoneMatch: []string{"0123"}}})
	s.wantCode(err, storage.CodeKeyNotFound, "a condition on what is not there")
}

var create = storage.Conditions{IfNoneMatch: []string{"*"}}

func conditionalCreate(s *suite) {
	s.setWith("key", []byte("first"), storage.SetOptions{Conditions: create})
	_, err := storage.Set(s.ctx, s.store, "key", []byte("second"), storage.SetOptions{Conditions: create})
	s.wantCode(err, storage.CodePreconditionFailed, "creating over an object")
	s.want("key", []byte("first"))

	large := noiseBytes(9, 6<<20)
	_, err = s.store.SetStream(s.ctx, "key", storage.Stream(noise(9, 6<<20), -1), storage.SetOptions{Conditions: create})
	s.wantCode(err, storage.CodePreconditionFailed, "creating over an object, with a body of unknown length")
	s.want("key", []byte("first"))
	if _, err = s.store.SetStream(s.ctx, "large", storage.Stream(noise(9, 6<<20), -1), storage.SetOptions{Conditions: create}); err != nil {
		s.Errorf("creating with a body of unknown length: %v", err)
	}
	s.want("large", large)
	s.wantNoDebris("conditional creates")
}

func conditionsAreRefused(s *suite) {
	_, err := storage.Set(s.ctx, s.store, "key", []byte("x"), storage.SetOptions{Conditions: create})
	s.wantCode(err, storage.CodeUnsupported, "a conditional create")
	s.set("key", []byte("old"))
	_, err = storage.Set(s.ctx, s.store, "key", []byte("x"), storage.SetOptions{Conditions: storage.Conditions{IfMatch: []string{"e"}}})
	s.wantCode(err, storage.CodeUnsupported, "a conditional update")
	s.want("key", []byte("old"))
}

func oneCreatorWins(s *suite) {
	for round := range 5 {
		key := fmt.Sprintf("key%d", round)
		var won atomic.Int32
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				_, err := storage.Set(s.ctx, s.store, key, fmt.Append(nil, i), storage.SetOptions{Conditions: create})
				switch storage.CodeOf(err) {
				case "":
					won.Add(1)
				case storage.CodePreconditionFailed:
				default:
					s.Errorf("creator %d: %v", i, err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			s.Errorf("%d of 8 creators of one key won", won.Load())
		}
	}
}

func conditionalUpdate(s *suite) {
	match := func(tag string) storage.SetOptions {
		return storage.SetOptions{Conditions: storage.Conditions{IfMatch: []string{tag}}}
	}
	_, err := storage.Set(s.ctx, s.store, "key", []byte("x"), match("0123"))
	if code := storage.CodeOf(err); code != storage.CodeKeyNotFound && code != storage.CodePreconditionFailed {
		s.Errorf("updating what is not there: got %v, want KEY_NOT_FOUND or PRECONDITION_FAILED", err)
	}
	s.set("key", []byte("first"))
	stat, err := s.store.Stat(s.ctx, "key", storage.StatOptions{})
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	second := s.setWith("key", []byte("second"), match(stat.ETag))
	s.want("key", []byte("second"))
	_, err = storage.Set(s.ctx, s.store, "key", []byte("third"), match(stat.ETag))
	s.wantCode(err, storage.CodePreconditionFailed, "updating with the etag of the object before")
	s.want("key", []byte("second"))
	if second.ETag != "" {
		s.setWith("key", []byte("third"), match(second.ETag))
		s.want("key", []byte("third"))
	}
	s.wantNoDebris("conditional updates")
}

func noUpdateIsLost(s *suite) {
	s.set("counter", []byte{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 5 {
				for {
					data, info, err := storage.Get(s.ctx, s.store, "counter")
					if err != nil {
						s.Errorf("reading: %v", err)
						return
					}
					opts := storage.SetOptions{Conditions: storage.Conditions{IfMatch: []string{info.ETag}}}
					_, err = storage.Set(s.ctx, s.store, "counter", append(slices.Clone(data), byte('0'+i)), opts)
					if err == nil {
						break
					}
					if storage.CodeOf(err) != storage.CodePreconditionFailed {
						s.Errorf("updating: %v", err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	if data, _, err := storage.Get(s.ctx, s.store, "counter"); err != nil || len(data) != 20 {
		s.Errorf("after 20 updates the object has %d entries, %v", len(data), err)
	}
}

// conditionalDelete applies to stores that say they can; any other refuses.
func conditionalDelete(s *suite) {
	if _, ok := s.store.(storage.ConditionalDeleter); !ok {
		conditionalDeleteIsRefused(s)
		return
	}
	s.set("key", []byte("first"))
	first, err := s.store.Stat(s.ctx, "key", storage.StatOptions{})
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	s.set("key", []byte("second"))
	remove := func(tag string) error {
		return storage.DeleteIf(s.ctx, s.store, "key", storage.Conditions{IfMatch: []string{tag}})
	}
	s.wantCode(remove(first.ETag), storage.CodePreconditionFailed, "deleting with the tag of the object before")
	s.want("key", []byte("second"))
	second, err := s.store.Stat(s.ctx, "key", storage.StatOptions{})
	if err != nil {
		s.Fatalf("stat: %v", err)
	}
	s.wantCode(remove(second.ETag), "", "deleting with the object's tag")
	s.wantCode(remove(second.ETag), storage.CodeKeyNotFound, "deleting what is not there")
	s.wantCode(remove("*"), storage.CodeKeyNotFound, "deleting anything where there is nothing")
	if ok, err := storage.Has(s.ctx, s.store, "key"); ok || err != nil {
		s.Errorf("after the delete: %t, %v", ok, err)
	}
}

func conditionalDeleteIsRefused(s *suite) {
	s.set("key", []byte("content"))
	err := storage.DeleteIf(s.ctx, s.store, "key", storage.Conditions{IfMatch: []string{"0123"}})
	s.wantCode(err, storage.CodeUnsupported, "a conditional delete")
	s.want("key", []byte("content"))
}

package muxengine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

// source is the content of a stored object as a front hands it on; it counts who
// reads it.
type source struct {
	data   []byte
	size   int64
	opened atomic.Int32
}

func (s *source) Open() (io.ReadCloser, error) {
	s.opened.Add(1)
	return io.NopCloser(bytes.NewReader(s.data)), nil
}

func (s *source) Size() int64      { return s.size }
func (s *source) Replayable() bool { return true }

// copyTo copies "source", which holds data, to key.
func (r *rig) copyTo(key, data string, change ...func(*storage.SetOptions, *source)) (storage.Info, *source, error) {
	r.t.Helper()
	info, err := r.Stat(context.Background(), "source", storage.StatOptions{})
	if err != nil {
		r.t.Fatalf("stat of the source: %v", err)
	}
	body := &source{data: []byte(data), size: int64(len(data))}
	opts := storage.SetOptions{
		Headers: storage.Headers{ContentType: "a/b"}, Metadata: map[string]string{"color": "blue"}, Tags: map[string]string{"t": "1"},
		CopyOf: &storage.CopyOf{Source: info},
	}
	for _, f := range change {
		f(&opts, body)
	}
	copied, err := r.SetStream(context.Background(), key, body, opts)
	return copied, body, err
}

func TestCopyIsMadeInsideTheMembersOfEveryMode(t *testing.T) {
	for _, mode := range []Mode{ModeFailover, ModeRoundRobin, ModeWeighted, ModeStickyByKey, ModeShield, ModeMirror} {
		t.Run(string(mode), func(t *testing.T) {
			options := []option{inMode(mode)}
			if mode == ModeWeighted {
				options = append(options, withWeights(1, 2, 3))
			}
			r := newRig(t, 3, options...)
			r.everywhere("source", "content")
			info, body, err := r.copyTo("to", "content")
			if err != nil || info.Version == "" || info.Version == "v1" || !maps.Equal(info.Metadata, map[string]string{"color": "blue"}) {
				t.Fatalf("got %+v, %v", info, err)
			}
			made := 0
			for _, f := range r.stores {
				if !f.has("to") {
					continue
				}
				made++
				o := f.objects["to"]
				if f.content("to") != "content" || o.info.Headers.ContentType != "a/b" || o.info.Metadata[versionKey] != info.Version || o.tags["t"] != "1" {
					t.Errorf("%s holds %+v with the tags %q", f.name, o.info, o.tags)
				}
				if f.count("copy") != 1 || f.count("set", "get") != 0 {
					t.Errorf("%s was asked %v", f.name, f.calls)
				}
			}
			want := 1
			if mode == ModeShield || mode == ModeMirror {
				want = 3
			}
			if made != want || body.opened.Load() != 0 || len(r.told(TopicFanoutPartial)) != 0 {
				t.Errorf("%d copies and %d reads of the source, want %d and none", made, body.opened.Load(), want)
			}
		})
	}
}

func TestCopyIsSentToMembersThatDoNotHoldTheObject(t *testing.T) {
	for name, change := range map[string]func(b *fake){
		"another version":                        func(b *fake) { b.put("source", "content", map[string]string{versionKey: "v0"}) },
		"the version with other content":         func(b *fake) { b.put("source", "CONTENT", map[string]string{versionKey: "v1"}) },
		"nothing":                                func(b *fake) { b.remove("source") },
		"the object, but the store cannot copy":  func(b *fake) { b.set(refusing("copy", storage.CodeUnsupported)) },
		"the object, but the store forbids that": func(b *fake) { b.set(refusing("copy", storage.CodeAccessDenied)) },
		"the object until it is to be copied": func(b *fake) {
			b.set(func(_ context.Context, op, _ string) error {
				if op == "copy" {
					b.put("source", "newer", map[string]string{versionKey: "v2"})
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, inMode(ModeMirror))
			r.everywhere("source", "content")
			info, err := r.Stat(t.Context(), "source", storage.StatOptions{})
			if err != nil {
				t.Fatal(err)
			}
			change(r.stores[1])
			_, body, err := r.copyTo("to", "content", func(o *storage.SetOptions, _ *source) { o.CopyOf.Source = info })
			if err != nil || body.opened.Load() != 1 {
				t.Fatalf("the source was read %d times, %v", body.opened.Load(), err)
			}
			for _, f := range r.stores {
				if f.content("to") != "content" {
					t.Errorf("%s holds %q", f.name, f.content("to"))
				}
			}
			wantCounts(t, r.stores, "set", 0, 1)
			if told := r.told(TopicFanoutPartial); len(told) != 0 {
				t.Errorf("told %+v", told)
			}
		})
	}
}

func refusing(refused string, code storage.Code) func(context.Context, string, string) error {
	return func(_ context.Context, op, _ string) error {
		if op == refused {
			return storage.Errorf(code, "", "no")
		}
		return nil
	}
}

func TestCopyUnderAConditionOrOntoItselfIsSent(t *testing.T) {
	r := newRig(t, 2)
	r.everywhere("source", "content")
	_, body, err := r.copyTo("to", "content", func(o *storage.SetOptions, _ *source) {
		o.Conditions = storage.Conditions{IfNoneMatch: []string{"*"}}
	})
	if err != nil || body.opened.Load() != 1 {
		t.Errorf("under a condition: %d reads, %v", body.opened.Load(), err)
	}
	if _, body, err = r.copyTo("source", "content"); err != nil || body.opened.Load() != 1 {
		t.Errorf("onto itself: %d reads, %v", body.opened.Load(), err)
	}
	wantCounts(t, r.stores, "copy", 0, 0)
}

func TestCopyFindsItsSourceOnTheMemberThatIsWrittenToOrIsSent(t *testing.T) {
	r := newRig(t, 2, spread)
	r.stores[0].put("source", "content", map[string]string{versionKey: "v1"})
	r.stores[1].put("elsewhere", "content", map[string]string{versionKey: "v1"})
	if _, body, err := r.copyTo("to", "content"); err != nil || body.opened.Load() != 0 {
		t.Errorf("%d reads, %v", body.opened.Load(), err)
	}
	other, err := r.Stat(t.Context(), "elsewhere", storage.StatOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, body, err := r.copyTo("to 2", "content", func(o *storage.SetOptions, _ *source) { o.CopyOf.Source = other })
	if err != nil || body.opened.Load() != 1 || r.stores[0].content("to 2") != "content" {
		t.Errorf("%d reads, %v", body.opened.Load(), err)
	}
}

func TestCopyWithoutAnAnswerIsFoundByItsVersion(t *testing.T) {
	r := newRig(t, 2)
	r.everywhere("source", "content")
	r.stores[0].after = func(_ context.Context, op string) error { return errors.New("reset") }
	info, body, err := r.copyTo("to", "content")
	if err != nil || info.ServedBy != "a" || body.opened.Load() != 0 {
		t.Errorf("got %+v after %d reads, %v", info, body.opened.Load(), err)
	}
	wantCounts(t, r.stores, "copy", 1, 0)
}

func TestCopyGoesOnToTheNextMemberWhereOneFails(t *testing.T) {
	r := newRig(t, 2)
	r.everywhere("source", "content")
	r.stores[0].set(func(_ context.Context, op, _ string) error {
		if op == "copy" {
			return unavailable()
		}
		return nil
	})
	info, body, err := r.copyTo("to", "content")
	if err != nil || info.ServedBy != "b" || body.opened.Load() != 0 {
		t.Errorf("got %+v after %d reads, %v", info, body.opened.Load(), err)
	}
}

func TestCopyHasTheTimeThatItsSizeTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := time.Duration(0)
		r := newRig(t, 2, inMode(ModeMirror), withTimeout(time.Second))
		r.everywhere("source", "content")
		r.stores[0].set(func(ctx context.Context, op, _ string) error {
			if op != "copy" {
				return nil
			}
			select {
			case <-time.After(takes):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		large := func(_ *storage.SetOptions, s *source) { s.size = 10 * copyRate }
		takes = 10*time.Second + 500*time.Millisecond
		if _, _, err := r.copyTo("to", "", large); err != nil || len(r.told(TopicFanoutPartial)) != 0 {
			t.Errorf("within its time: %v, %+v", err, r.told(TopicFanoutPartial))
		}
		takes = 12 * time.Second
		_, _, err := r.copyTo("to 2", "", large)
		told := r.told(TopicFanoutPartial)
		if err != nil || len(told) != 1 || told[0].Failed[0] != "a" || storage.CodeOf(told[0].Causes[0]) != storage.CodeBackendTimeout {
			t.Errorf("beyond its time: %v, %+v", err, told)
		}
	})
}

func TestPartsAreCopiedInsideTheMembers(t *testing.T) {
	for _, mode := range []Mode{ModeFailover, ModeMirror} {
		r := newRig(t, 2, inMode(mode))
		r.stores[1].salt = "b"
		r.everywhere("source", "0123456789")
		info, err := r.Stat(t.Context(), "source", storage.StatOptions{})
		if err != nil {
			t.Fatal(err)
		}
		id := r.begin()
		body := &source{data: []byte("2345"), size: 4}
		part, err := r.UploadPart(t.Context(), "k", id, 1, body, storage.SetOptions{
			CopyOf: &storage.CopyOf{Source: info, Range: &storage.Range{First: 2, Last: 5}},
		})
		if err != nil || body.opened.Load() != 0 {
			t.Fatalf("%s: %d reads, %v", mode, body.opened.Load(), err)
		}
		if _, err := r.complete(id, part); err != nil {
			t.Fatal(err)
		}
		r.mustGet("k", "2345")
		r.stores[1].put("source", "0123456789", map[string]string{versionKey: "v2"})
		r.stores[0].put("source", "0123456789", map[string]string{versionKey: "v2"})
		id = r.begin()
		part, err = r.UploadPart(t.Context(), "k", id, 1, body, storage.SetOptions{
			CopyOf: &storage.CopyOf{Source: info, Range: &storage.Range{First: 2, Last: 5}},
		})
		if err != nil || body.opened.Load() == 0 {
			t.Errorf("%s: a part of another version was copied inside, %v", mode, err)
		}
		if _, err := r.complete(id, part); err != nil {
			t.Error(err)
		}
	}
}

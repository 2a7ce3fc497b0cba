package muxengine

import (
	"maps"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
)

func (r *rig) wantTags(key string, want map[string]string) {
	r.t.Helper()
	got, err := r.GetTags(r.t.Context(), key)
	if err != nil || !maps.Equal(got, want) {
		r.t.Errorf("%q has the tags %q, %v; want %q", key, got, err, want)
	}
}

func TestTagsAreSetWhereTheModeWrites(t *testing.T) {
	tags := map[string]string{"a": "1"}
	r := newRig(t, 3, inMode(ModeMirror))
	r.everywhere("k", "x")
	delete(r.stores[2].objects, "k")
	if err := r.SetTags(t.Context(), "k", tags); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.stores[:2] {
		if !maps.Equal(f.objects["k"].tags, tags) {
			t.Errorf("%s has the tags %q", f.name, f.objects["k"].tags)
		}
	}
	if told := r.told(TopicFanoutPartial); len(told) != 1 || len(told[0].Failed) != 1 || told[0].Failed[0] != "c" {
		t.Errorf("told %+v of the member that missed it", told)
	}

	r = newRig(t, 2)
	r.everywhere("k", "x")
	r.stores[0].fail(unavailable())
	if err := r.SetTags(t.Context(), "k", tags); err != nil || !maps.Equal(r.stores[1].objects["k"].tags, tags) {
		t.Errorf("with the first member down: %q, %v", r.stores[1].objects["k"].tags, err)
	}
	wantCode(t, r.SetTags(t.Context(), "none", tags), storage.CodeKeyNotFound)

	r = newRig(t, 2, inMode(ModeShield))
	r.stores[1].put("k", "x", nil)
	wantCode(t, r.SetTags(t.Context(), "k", tags), storage.CodeKeyNotFound)
}

func TestTagsOfSpreadKeysAreWhereTheObjectIs(t *testing.T) {
	for _, mode := range []Mode{ModeFailover, ModeStickyByKey, ModeMirror} {
		r := newRig(t, 3, inMode(mode), spread)
		r.stores[1].put("k", "x", nil)
		if err := r.SetTags(t.Context(), "k", map[string]string{"a": "1"}); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		r.wantTags("k", map[string]string{"a": "1"})
		if len(r.stores[1].objects["k"].tags) != 1 || r.stores[0].has("k") || r.stores[2].has("k") || len(r.told(TopicFanoutPartial)) != 0 {
			t.Errorf("%s: the tags are not where the object is", mode)
		}
		wantCode(t, r.SetTags(t.Context(), "none", nil), storage.CodeKeyNotFound)
		_, err := r.GetTags(t.Context(), "none")
		wantCode(t, err, storage.CodeKeyNotFound)
		r.stores[2].hide()
		_, err = r.GetTags(t.Context(), "none")
		wantCode(t, err, storage.CodeAllBackendsDown)
	}
}

// hide makes the store unreachable.
func (f *fake) hide() { f.fail(unavailable()) }

func TestTagsAreRefusedWhereOneMemberKeepsNone(t *testing.T) {
	r := newRig(t, 2, inMode(ModeMirror), withMembers(func(i int, m *Member) {
		m.Storage.(*fake).caps.Tagging = i == 0
	}))
	if r.Capabilities().Tagging {
		t.Error("the mux says that it keeps tags")
	}
	tags := map[string]string{"a": "1"}
	_, err := storage.Set(t.Context(), r.Mux, "k", nil, storage.SetOptions{Tags: tags})
	wantCode(t, err, storage.CodeUnsupported)
	_, err = r.CreateUpload(t.Context(), "k", storage.SetOptions{Tags: tags})
	wantCode(t, err, storage.CodeUnsupported)
	wantCode(t, r.SetTags(t.Context(), "k", tags), storage.CodeUnsupported)
	_, err = r.GetTags(t.Context(), "k")
	wantCode(t, err, storage.CodeUnsupported)
	wantCounts(t, r.stores, "set", 0, 0)
	wantCounts(t, r.stores, "createUpload", 0, 0)
}

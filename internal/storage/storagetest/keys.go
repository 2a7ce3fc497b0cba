package storagetest

import (
	"slices"
	"strings"

	"github.com/suaveplan/storagemux/internal/storage"
)

var keyChecks = []check{
	{name: "odd keys", run: oddKeys},
	{name: "a key and keys under it", run: keyUnderKey},
	{name: "what cannot be a key is refused", run: invalidKeys},
	{name: "reserved keys are hidden", run: reservedKeysAreHidden},
}

// oddKeysToTry are keys of which no two are prefixes of each other segment-wise.
var oddKeysToTry = []string{
	"plain", "with space", " leading and trailing ", "plus+plus", "percent%", "%2F", "percent%20encoded", "%25", "%%", "%.", "%+x",
	"question?mark", "hash#tag", "amp&ersand=1", `quote"'`, `back\slash`, "<xml>", "semi;colon,comma", "star*", "tab\tnewline\n", "dollar$@!()",
	"ünïcödé/ключ/キー/😀", "e\u0301", "\u00e9", ".hidden", "..hidden", "...", "dot.", "-dash", "~tilde", "CON", "a:b|c",
	"slash//double", "slash///triple", "/leading", "//leading2", "trailing/", "trailing2//",
	"./dot1", "../dot2", "dot3/./x", "dot4/../x", "dot5/.", "dot6/..", ".", "..",
	".storagemux", ".storagemuxer/x", "deep/.storagemux/tmp/x",
	strings.Repeat("k", 255), strings.Repeat("s", 256) + "/x", strings.Repeat("l", 1024), strings.Repeat("ü", 512), strings.Repeat("d/", 500) + "x",
}

func oddKeys(s *suite) {
	var stored []string
	for _, key := range oddKeysToTry {
		fate := s.fate(key)
		if fate == Mangled {
			continue
		}
		_, err := storage.Set(s.ctx, s.store, key, []byte(key), storage.SetOptions{})
		if fate == RefusedKey {
			if storage.Classify(err) != storage.ClassSemantic {
				s.Errorf("storing under %q, which the server cannot hold: got %v, want a semantic error", key, err)
			}
			continue
		}
		if err != nil {
			s.Errorf("storing under %q: %v", key, err)
			continue
		}
		stored = append(stored, key)
	}
	for _, key := range stored {
		s.want(key, []byte(key))
		if stat, err := s.store.Stat(s.ctx, key, storage.StatOptions{}); err != nil || stat.Key != key || stat.Size != int64(len(key)) {
			s.Errorf("stat of %q: %q, %d bytes, %v", key, stat.Key, stat.Size, err)
		}
	}
	slices.Sort(stored)
	if got, _ := s.list(storage.ListOptions{}); !slices.Equal(got, stored) {
		s.Errorf("listing: %s", difference(got, stored))
	}
	if got, _ := s.list(storage.ListOptions{Limit: 7}); !slices.Equal(got, stored) {
		s.Errorf("listing seven at a time: %s", difference(got, stored))
	}
	for _, key := range stored {
		if got, _ := s.list(storage.ListOptions{Prefix: key, Limit: 1}); len(got) == 0 || got[0] != key {
			s.Errorf("listing with a key as prefix: got %q, want %q first", got, key)
		}
		if err := s.store.Delete(s.ctx, key); err != nil {
			s.Errorf("deleting %q: %v", key, err)
		}
	}
	if got, _ := s.list(storage.ListOptions{}); len(got) > 0 {
		s.Errorf("after all were deleted, there is %q", got)
	}
}

// difference says which entries are missing and which are too many.
func difference(got, want []string) string {
	var missing, extra []string
	for _, w := range want {
		if !slices.Contains(got, w) {
			missing = append(missing, w)
		}
	}
	for _, g := range got {
		if !slices.Contains(want, g) {
			extra = append(extra, g)
		}
	}
	if missing == nil && extra == nil {
		return "the same entries in another order or number"
	}
	return "missing " + quoteAll(missing) + ", not wanted " + quoteAll(extra)
}

func quoteAll(keys []string) string {
	for i, k := range keys {
		if len(k) > 60 {
			k = k[:60] + "..."
		}
		keys[i] = `"` + k + `"`
	}
	return "[" + strings.Join(keys, " ") + "]"
}

func keyUnderKey(s *suite) {
	if s.NoKeyUnderKey {
		s.set("a/b", []byte("below"))
		_, err := storage.Set(s.ctx, s.store, "a", []byte("above"), storage.SetOptions{})
		if storage.Classify(err) != storage.ClassSemantic {
			s.Errorf("storing a key above another, which the server cannot: got %v, want a semantic error", err)
		}
		s.want("a/b", []byte("below"))
		return
	}
	for _, keys := range [][]string{{"a", "a/b", "a/b/c"}, {"x/y/z", "x/y", "x"}, {"m/n", "m", "m/"}} {
		for _, key := range keys {
			s.set(key, []byte(key))
		}
		for _, key := range keys {
			s.want(key, []byte(key))
		}
	}
	want := []string{"a", "a/b", "a/b/c", "m", "m/", "m/n", "x", "x/y", "x/y/z"}
	if got, _ := s.list(storage.ListOptions{}); !slices.Equal(got, want) {
		s.Errorf("listing: got %q, want %q", got, want)
	}
	if got, _ := s.list(storage.ListOptions{Delimiter: "/"}); !slices.Equal(got, []string{"a", "a/", "m", "m/", "x", "x/"}) {
		s.Errorf("listing with a delimiter: got %q", got)
	}
	s.set("a", []byte("again"))
	s.set("a/b", []byte("again"))
	s.want("a", []byte("again"))
	s.want("a/b", []byte("again"))
	for _, key := range []string{"a", "x/y"} {
		if err := s.store.Delete(s.ctx, key); err != nil {
			s.Errorf("deleting %q: %v", key, err)
		}
		_, err := s.store.Stat(s.ctx, key, storage.StatOptions{})
		s.wantCode(err, storage.CodeKeyNotFound, "stat of the deleted %q", key)
	}
	s.want("a/b/c", []byte("a/b/c"))
	s.want("x/y/z", []byte("x/y/z"))
	for _, key := range []string{"a/b/c", "a/b"} {
		if err := s.store.Delete(s.ctx, key); err != nil {
			s.Errorf("deleting %q: %v", key, err)
		}
	}
	s.set("a", []byte("alone"))
	s.want("a", []byte("alone"))
}

func invalidKeys(s *suite) {
	for _, key := range []string{"", "\x00", "nul\x00inside", "\xff\xfe", strings.Repeat("k", 1025)} {
		_, err := storage.Set(s.ctx, s.store, key, []byte("x"), storage.SetOptions{})
		s.wantCode(err, storage.CodeInvalidKey, "set of %.20q", key)
		_, err = s.store.GetStream(s.ctx, key, storage.GetOptions{})
		s.wantCode(err, storage.CodeInvalidKey, "get of %.20q", key)
		_, err = s.store.Stat(s.ctx, key, storage.StatOptions{})
		s.wantCode(err, storage.CodeInvalidKey, "stat of %.20q", key)
		s.wantCode(s.store.Delete(s.ctx, key), storage.CodeInvalidKey, "delete of %.20q", key)
		if s.store.Capabilities().PartialWrite {
			_, err = s.store.SetPartial(s.ctx, key, 0, storage.Bytes([]byte("x")))
			s.wantCode(err, storage.CodeInvalidKey, "partial write of %.20q", key)
		}
	}
}

func reservedKeysAreHidden(s *suite) {
	reserved := storage.ReservedParts + "upload/1"
	if _, err := storage.Set(s.ctx, s.store, reserved, []byte("part"), storage.SetOptions{}); err != nil {
		s.Fatalf("storing a reserved key, as a mux does: %v", err)
	}
	s.set("a", []byte("a"))
	s.set("key", []byte("k"))
	for _, opts := range []storage.ListOptions{{}, {Delimiter: "/"}, {Limit: 1}, {Limit: 1, Delimiter: "/"}} {
		if got, _ := s.list(opts); !slices.Equal(got, []string{"a", "key"}) {
			s.Errorf("listing %+v: got %q", opts, got)
		}
	}
	for _, opts := range []storage.ListOptions{{Prefix: ".storage"}, {Prefix: ".storage", Delimiter: "/"}, {Prefix: storage.ReservedPrefix}} {
		if got, _ := s.list(opts); len(got) > 0 {
			s.Errorf("listing %+v: got %q", opts, got)
		}
	}
	s.want(reserved, []byte("part"))
	_, err := s.store.Stat(s.ctx, storage.ProbeKey, storage.StatOptions{})
	s.wantCode(err, storage.CodeKeyNotFound, "stat of the probe key")
	if err := s.store.Delete(s.ctx, reserved); err != nil {
		s.Errorf("deleting a reserved key: %v", err)
	}
}

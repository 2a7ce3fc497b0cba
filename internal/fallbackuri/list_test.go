package fallbackuri

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

var bases = ladderOf("memory://a/x", "memory://b", "memory://c/y/")

// filled puts one, two and three keys where bases finds them.
func filled(t *testing.T, policy Policy) *rig {
	t.Helper()
	r := newRig(t, policy)
	r.a.put(t, "x/m", "from a")
	r.b.put(t, "z", "from b")
	r.b.put(t, "m", "from b, longer")
	r.c.put(t, "y/b", "from c")
	r.c.put(t, "y/m", "from c, longest")
	r.c.put(t, "y/d/e", "from c")
	return r
}

func keysOf(entries []storage.Info) (keys []string) {
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return keys
}

func TestUnionNamesEveryKeyOnceAsTheFirstCandidateHoldsIt(t *testing.T) {
	r := filled(t, Policy{})
	l, err := r.List(t.Context(), bases, storage.ListOptions{})
	if err != nil || !slices.Equal(keysOf(l.Entries), []string{"b", "d/e", "m", "z"}) || l.HasMore {
		t.Fatalf("got %+v, %v", l, err)
	}
	if l.Entries[2].Size != int64(len("from a")) {
		t.Fatalf("m is another candidate's: %+v", l.Entries[2])
	}
	l, err = r.List(t.Context(), bases, storage.ListOptions{Delimiter: "/"})
	if err != nil || !slices.Equal(l.Prefixes, []string{"d/"}) || len(l.Entries) != 3 {
		t.Fatalf("got %+v, %v", l, err)
	}
}

func TestListSaysWhetherAnyCandidateHasMore(t *testing.T) {
	for _, mode := range []ListMode{ListUnion, ListConcat} {
		r := filled(t, Policy{ListMode: mode})
		l, err := r.List(t.Context(), bases, storage.ListOptions{Limit: 2})
		if err != nil || !l.HasMore {
			t.Fatalf("%s: got %+v, %v", mode, l, err)
		}
	}
}

func TestConcatPutsTheListsOneAfterAnother(t *testing.T) {
	r := filled(t, Policy{ListMode: ListConcat})
	l, err := r.List(t.Context(), bases, storage.ListOptions{})
	if err != nil || !slices.Equal(keysOf(l.Entries), []string{"m", "m", "z", "b", "d/e", "m"}) || l.HasMore {
		t.Fatalf("got %q, %v", keysOf(l.Entries), err)
	}
}

func TestListThatLacksACandidateFailsOrTellsByPolicy(t *testing.T) {
	for _, mode := range []ListMode{ListUnion, ListConcat} {
		r := filled(t, Policy{ListMode: mode})
		r.b.fail(unavailable())
		_, err := r.List(t.Context(), bases, storage.ListOptions{})
		f := wantFailure(t, err, storage.CodeFallbackListUnionFailed)
		if len(f.CandidateErrors) != 1 || f.CandidateErrors[0].URI != "memory://b" || f.URI != shown(bases) || storage.Classify(err) != storage.ClassTransient {
			t.Fatalf("got %+v", f)
		}
		r = filled(t, Policy{ListMode: mode, ListFailureMode: ListPartial})
		r.b.fail(unavailable())
		l, err := r.List(t.Context(), bases, storage.ListOptions{})
		keys := keysOf(l.Entries)
		slices.Sort(keys)
		if err != nil || !slices.Equal(slices.Compact(keys), []string{"b", "d/e", "m"}) {
			t.Fatalf("%s: got %q, %v", mode, keys, err)
		}
		if e := r.told(TopicListPartial); len(e) != 1 || e[0].Failed[0].URI != "memory://b" {
			t.Fatalf("got %+v", e)
		}
	}
}

func TestListOfNobodyIsAnErrorAlsoWhereItMayBePartial(t *testing.T) {
	for _, mode := range []ListFailureMode{ListThrow, ListPartial} {
		r := filled(t, Policy{ListFailureMode: mode})
		for _, f := range []*fake{r.a, r.b, r.c} {
			f.fail(unavailable())
		}
		_, err := r.List(t.Context(), bases, storage.ListOptions{})
		if f := wantFailure(t, err, storage.CodeFallbackListUnionFailed); len(f.CandidateErrors) != 3 {
			t.Fatalf("got %+v", f)
		}
	}
}

func TestPagesOfAUnionGoOnWhereTheLastEnded(t *testing.T) {
	r := newRig(t, Policy{})
	var want []string
	for i := range 30 {
		key := fmt.Sprintf("%02d", i)
		want = append(want, key)
		r.a.put(t, "x/"+key, "")
		if i%2 == 0 {
			r.b.put(t, key, "")
		}
	}
	l, err := NewStorage(bases, Options{Resolver: r.stores})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var got []string
	for after := ""; ; {
		page, err := l.List(t.Context(), storage.ListOptions{After: after, Limit: 4})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, keysOf(page.Objects)...)
		if after = page.Next; after == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q", got)
	}
}

func TestPartsOfUploadsAreHiddenInTheTargetTooAndListedWhenAskedFor(t *testing.T) {
	a, b := memory.New(0), memory.New(0)
	l, err := NewStorage(ladderOf("memory://a/base", "memory://b"), Options{Resolver: stores{"a": a, "b": b}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	keys := []string{storage.ReservedParts + "open/1/x", storage.ReservedParts + "open/2/x", storage.ReservedParts + "open/3/x"}
	for _, key := range keys {
		if _, err := storage.Set(t.Context(), l, key, []byte("x"), storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range map[string]storage.Storage{"a": a, "b": b, "the ladder": l} {
		if page, err := s.List(t.Context(), storage.ListOptions{}); err != nil || len(page.Objects)+len(page.Prefixes) != 0 {
			t.Errorf("%s shows %+v, %v", name, page, err)
		}
	}
	for _, delimiter := range []string{"", "/"} {
		opts := storage.ListOptions{Prefix: storage.ReservedParts + "open/", Delimiter: delimiter, Reserved: true, Limit: 1}
		var listed []string
		for range 4 {
			page, err := l.List(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page.Objects {
				listed = append(listed, o.Key)
			}
			for _, p := range page.Prefixes {
				listed = append(listed, p+"x")
			}
			if opts.After = page.Next; page.Next == "" {
				break
			}
		}
		if !slices.Equal(listed, keys) {
			t.Errorf("with the delimiter %q: got %q", delimiter, listed)
		}
	}
	for _, key := range keys {
		if data, _, err := storage.Get(t.Context(), l, key); err != nil || string(data) != "x" {
			t.Errorf("%s: got %q, %v", key, data, err)
		}
		if err := l.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
	long := storage.ReservedParts + strings.Repeat("k", storage.MaxKeyBytes-len("base/under/")-len(storage.ReservedParts))
	if _, err := storage.Set(t.Context(), l, long, nil, storage.SetOptions{}); err != nil {
		t.Errorf("the longest key of a part: %v", err)
	}
	if _, err := storage.Set(t.Context(), l, long+"k", nil, storage.SetOptions{}); storage.CodeOf(err) != storage.CodeInvalidKey {
		t.Errorf("one byte more: %v", err)
	}
}

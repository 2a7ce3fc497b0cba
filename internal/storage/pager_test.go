package storage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// list makes a whole listing of sorted keys, page by page, as a store does.
func list(keys []string, opts ListOptions) (entries []string, pages int) {
	for {
		p := NewPager(opts)
		for _, key := range keys {
			from, done := p.From()
			if done {
				break
			}
			if key < from {
				continue
			}
			if !p.Add(Info{Key: key}) {
				break
			}
		}
		page := p.Page()
		merged := slices.Clone(page.Prefixes)
		for _, o := range page.Objects {
			merged = append(merged, o.Key)
		}
		slices.Sort(merged)
		entries = append(entries, merged...)
		pages++
		if page.Next == "" {
			return entries, pages
		}
		opts.After = page.Next
	}
}

func TestPagerFoldsAndPages(t *testing.T) {
	keys := []string{".storagemux/parts/1", ".storagemux/probe", ".x", "a", "a-b", "a/1", "a/2", "a/b/1", "a0", "b//1", "b/1", "c/", "ü"}
	tests := map[string]struct {
		opts ListOptions
		want string
	}{
		"all":                              {ListOptions{}, ".x a a-b a/1 a/2 a/b/1 a0 b//1 b/1 c/ ü"},
		"folded":                           {ListOptions{Delimiter: "/"}, ".x a a-b a/ a0 b/ c/ ü"},
		"below a prefix":                   {ListOptions{Prefix: "a/", Delimiter: "/"}, "a/1 a/2 a/b/"},
		"prefix inside a segment":          {ListOptions{Prefix: "a", Delimiter: "/"}, "a a-b a/ a0"},
		"another delimiter":                {ListOptions{Delimiter: "b"}, ".x a a-b a/1 a/2 a/b a0 b c/ ü"},
		"an empty segment":                 {ListOptions{Prefix: "b/", Delimiter: "/"}, "b// b/1"},
		"after a key":                      {ListOptions{After: "a/2"}, "a/b/1 a0 b//1 b/1 c/ ü"},
		"after a common prefix":            {ListOptions{Delimiter: "/", After: "a/"}, "a0 b/ c/ ü"},
		"after a key that is folded":       {ListOptions{Delimiter: "/", After: "a/1"}, "a0 b/ c/ ü"},
		"after what is not there":          {ListOptions{After: "bzz"}, "c/ ü"},
		"after, before the prefix":         {ListOptions{Prefix: "b", After: "a"}, "b//1 b/1"},
		"after, above the prefix":          {ListOptions{Prefix: "a", After: "b"}, ""},
		"a prefix that nothing has":        {ListOptions{Prefix: "zzz"}, ""},
		"reserved keys, asked for by name": {ListOptions{Prefix: ReservedPrefix}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, limit := range []int{0, 1, 2, 3} {
				tt.opts.Limit = limit
				got, _ := list(keys, tt.opts)
				if strings.Join(got, " ") != tt.want {
					t.Errorf("limit %d: got %q, want %q", limit, got, tt.want)
				}
			}
		})
	}
}

func TestPagerGivesNoEmptyLastPage(t *testing.T) {
	keys := []string{"a", "b", "c", "d"}
	if _, pages := list(keys, ListOptions{Limit: 2}); pages != 2 {
		t.Errorf("four keys at two a page took %d pages", pages)
	}
}

func TestPagerSkippingChangesNothing(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		var keys []string
		for range rnd.IntN(30) {
			var b strings.Builder
			for range 1 + rnd.IntN(6) {
				b.WriteByte("ab/-\xc3"[rnd.IntN(4)])
			}
			keys = append(keys, b.String())
		}
		slices.Sort(keys)
		keys = slices.Compact(keys)
		opts := ListOptions{Prefix: []string{"", "a", "a/", "b"}[rnd.IntN(4)], Delimiter: []string{"", "/", "-", "a/"}[rnd.IntN(4)], After: []string{"", "a", "a/", "ab"}[rnd.IntN(4)]}
		var want []string
		for _, key := range keys {
			if !strings.HasPrefix(key, opts.Prefix) {
				continue
			}
			entry := key
			if folded := opts.Fold(key); folded != "" {
				entry = folded
			}
			if entry > opts.After && !slices.Contains(want, entry) {
				want = append(want, entry)
			}
		}
		opts.Limit = 1 + rnd.IntN(4)
		if got, _ := list(keys, opts); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("keys %q, %+v: got %q, want %q", keys, opts, got, want)
		}
	}
}

func TestPrefixEndIsTheNextStringAboveAll(t *testing.T) {
	for prefix, want := range map[string]string{"": "", "a": "b", "a/": "a0", "a\xff": "b", "\xff\xff": ""} {
		if got := PrefixEnd(prefix); got != want {
			t.Errorf("PrefixEnd(%q) = %q, want %q", prefix, got, want)
		}
	}
}

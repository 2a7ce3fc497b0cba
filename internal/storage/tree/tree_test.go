package tree

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
)

// folders is a store of files that keeps folders. It counts how often it is asked
// for each.
type folders struct {
	keys  []string
	asked map[string]int
}

func (f *folders) in(_ context.Context, folder string) ([]Entry, error) {
	f.asked[folder]++
	seen := map[string]bool{}
	var entries []Entry
	for _, key := range f.keys {
		rest, ok := strings.CutPrefix(key, folder)
		name, _, deeper := strings.Cut(rest, "/")
		if !ok || seen[name] {
			continue
		}
		seen[name] = true
		if deeper {
			name += "/"
		}
		entries = append(entries, Entry{Info: storage.Info{Key: folder + name}, Folder: deeper})
	}
	rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	return entries, nil
}

// expected makes the same pages out of the sorted keys.
func expected(keys []string, opts storage.ListOptions) storage.ListPage {
	pager := storage.NewPager(opts)
	for _, key := range slices.Sorted(slices.Values(keys)) {
		if !pager.Add(storage.Info{Key: key}) {
			break
		}
	}
	return pager.Page()
}

func TestPagesAreThoseOfTheSortedKeys(t *testing.T) {
	// Bytes below and above the slash, so that the order of names in a folder is
	// not that of keys.
	keys := []string{
		"a", "b!", "b-/x", "b/1", "b/2/y", "b/2/z", "b/3", "b0", "b00/q!", "c/d/e/f", "c/d-e", "c/d.e/f", "ü/x", "z",
		".storagemux/parts/1", ".storagemux/tmp/2", ".storagemux-not/x",
	}
	for _, prefix := range []string{"", "b", "b/", "b/2", "b/2/", "c/d", "none", "none/", "a/", "b//", "../", "b/2/y/", ".storagemux", storage.ReservedParts} {
		for _, delimiter := range []string{"", "/", "-", "/2"} {
			for limit := 1; limit < len(keys)+2; limit++ {
				opts := storage.ListOptions{Prefix: prefix, Delimiter: delimiter, Limit: limit, Reserved: prefix == storage.ReservedParts}
				for range len(keys) + 1 {
					f := &folders{keys: keys, asked: map[string]int{}}
					got, err := List(t.Context(), opts, f.in)
					if want := expected(keys, opts); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
						t.Fatalf("%+v: got %v, %v, want %v", opts, got, err, want)
					}
					for folder, n := range f.asked {
						if n > 1 {
							t.Errorf("%+v: %q was listed %d times", opts, folder, n)
						}
					}
					if opts.After = got.Next; opts.After == "" {
						break
					}
				}
				if opts.After != "" {
					t.Errorf("%+v: the pages have no end", opts)
				}
			}
		}
	}
}

func TestOnlyFoldersOnTheWayAreAskedFor(t *testing.T) {
	keys := []string{"a/1", "b/c/1", "b/c/2", "b/d/1", "e/1", ".storagemux/tmp/1"}
	for name, tt := range map[string]struct {
		opts storage.ListOptions
		want []string
	}{
		"all":                          {storage.ListOptions{}, []string{"", "a/", "b/", "b/c/", "b/d/", "e/"}},
		"the first key":                {storage.ListOptions{Limit: 1}, []string{"", "a/", "b/", "b/c/"}}, // one more says that there is more
		"a prefix":                     {storage.ListOptions{Prefix: "b/c/"}, []string{"b/c/"}},
		"a prefix that ends in a name": {storage.ListOptions{Prefix: "b/c"}, []string{"b/", "b/c/"}},
		"after a key":                  {storage.ListOptions{After: "b/c/2"}, []string{"", "b/", "b/c/", "b/d/", "e/"}},
		"after a folder":               {storage.ListOptions{After: "b/", Delimiter: "/"}, []string{"", "e/"}},
		"what cannot be a folder":      {storage.ListOptions{Prefix: "b/../e/"}, nil},
	} {
		f := &folders{keys: keys, asked: map[string]int{}}
		if _, err := List(t.Context(), tt.opts, f.in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for folder := range f.asked {
			got = append(got, folder)
		}
		if slices.Sort(got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: asked for %q, want %q", name, got, tt.want)
		}
	}
}

func TestAFolderThatCannotBeListedFailsThePage(t *testing.T) {
	broken := errors.New("broken")
	f := &folders{keys: []string{"a", "b/1", "c/1"}, asked: map[string]int{}}
	in := func(ctx context.Context, folder string) ([]Entry, error) {
		if folder == "b/" {
			return nil, broken
		}
		return f.in(ctx, folder)
	}
	if page, err := List(t.Context(), storage.ListOptions{}, in); !errors.Is(err, broken) || len(page.Objects) > 0 {
		t.Errorf("got %v, %v", page, err)
	}
	if _, err := List(t.Context(), storage.ListOptions{Prefix: "c/"}, in); err != nil {
		t.Errorf("a listing that does not need it: %v", err)
	}
}

func TestAPathIsWhatServersDoNotClean(t *testing.T) {
	for key, want := range map[string]bool{
		"a": true, "a/b": true, ".a": true, "...": true, "a.": true, "ü/ ": true,
		"": false, "/": false, "/a": false, "a/": false, "a//b": false, ".": false, "a/./b": false, "../a": false, "a/..": false,
	} {
		if got := IsPath(key); got != want {
			t.Errorf("IsPath(%q) is %t", key, got)
		}
	}
}

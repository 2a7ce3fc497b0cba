package storagetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/suaveplan/storagemux/internal/storage"
)

var listChecks = []check{
	{name: "lists with prefix and delimiter", run: lists},
	{name: "lists after an entry", run: listsAfter},
	{name: "long lists", run: longLists},
}

// listed are keys in byte order whose order by folder would be another one.
var listed = []string{
	"a-b/1", "a.txt", "a/1", "a/2", "a/b/1", "a/b/2", "a0", "b c/1", "b+c", "b/ü", "photos/2025/x", "photos/2026/y", "photos/z", "z",
}

func (s *suite) fillListed() {
	for _, key := range listed {
		s.set(key, []byte(key))
	}
}

func lists(s *suite) {
	if entries, pages := s.list(storage.ListOptions{}); len(entries) > 0 || pages != 1 {
		s.Errorf("an empty store lists %q in %d pages", entries, pages)
	}
	s.fillListed()
	tests := []struct {
		opts storage.ListOptions
		want []string
	}{
		{storage.ListOptions{}, listed},
		{storage.ListOptions{Delimiter: "/"}, []string{"a-b/", "a.txt", "a/", "a0", "b c/", "b+c", "b/", "photos/", "z"}},
		{storage.ListOptions{Prefix: "a/", Delimiter: "/"}, []string{"a/1", "a/2", "a/b/"}},
		{storage.ListOptions{Prefix: "a/"}, []string{"a/1", "a/2", "a/b/1", "a/b/2"}},
		{storage.ListOptions{Prefix: "a"}, []string{"a-b/1", "a.txt", "a/1", "a/2", "a/b/1", "a/b/2", "a0"}},
		{storage.ListOptions{Prefix: "a", Delimiter: "/"}, []string{"a-b/", "a.txt", "a/", "a0"}},
		{storage.ListOptions{Prefix: "photos/202", Delimiter: "/"}, []string{"photos/2025/", "photos/2026/"}},
		{storage.ListOptions{Prefix: "photos/2025/x"}, []string{"photos/2025/x"}},
		{storage.ListOptions{Prefix: "b/ü", Delimiter: "/"}, []string{"b/ü"}},
		{storage.ListOptions{Prefix: "b "}, []string{"b c/1"}},
		{storage.ListOptions{Prefix: "b+"}, []string{"b+c"}},
		{storage.ListOptions{Prefix: "nothing/"}, nil},
		{storage.ListOptions{Prefix: "a/1/below"}, nil},
		{storage.ListOptions{Prefix: "zz", Delimiter: "/"}, nil},
	}
	if !s.SlashDelimiterOnly {
		tests = append(tests, []struct {
			opts storage.ListOptions
			want []string
		}{
			{storage.ListOptions{Delimiter: "b"}, []string{"a-b", "a.txt", "a/1", "a/2", "a/b", "a0", "b", "photos/2025/x", "photos/2026/y", "photos/z", "z"}},
			{storage.ListOptions{Prefix: "photos", Delimiter: "/202"}, []string{"photos/202", "photos/z"}},
		}...)
	}
	for _, tt := range tests {
		for _, limit := range []int{0, 1, 2, 5} {
			tt.opts.Limit = limit
			if got, _ := s.list(tt.opts); !slices.Equal(got, tt.want) {
				s.Errorf("listing %+v: got %q, want %q", tt.opts, got, tt.want)
			}
		}
	}
}

func listsAfter(s *suite) {
	s.fillListed()
	tests := []struct {
		opts storage.ListOptions
		want []string
	}{
		{storage.ListOptions{After: "photos/2026/y"}, []string{"photos/z", "z"}},
		{storage.ListOptions{After: "photos/2026/yy"}, []string{"photos/z", "z"}},
		{storage.ListOptions{After: "b+"}, []string{"b+c", "b/ü", "photos/2025/x", "photos/2026/y", "photos/z", "z"}},
		{storage.ListOptions{After: "zzz"}, nil},
		{storage.ListOptions{After: "photos/", Delimiter: "/"}, []string{"z"}},
		{storage.ListOptions{After: "a/", Delimiter: "/"}, []string{"a0", "b c/", "b+c", "b/", "photos/", "z"}},
		{storage.ListOptions{After: "a/b/", Prefix: "a/", Delimiter: "/"}, nil},
		{storage.ListOptions{After: "a/2", Prefix: "a/", Delimiter: "/"}, []string{"a/b/"}},
		{storage.ListOptions{After: "A", Prefix: "a/", Delimiter: "/"}, []string{"a/1", "a/2", "a/b/"}},
		{storage.ListOptions{After: "b", Prefix: "a/"}, nil},
	}
	for _, tt := range tests {
		for _, limit := range []int{0, 1, 2} {
			tt.opts.Limit = limit
			if got, _ := s.list(tt.opts); !slices.Equal(got, tt.want) {
				s.Errorf("listing %+v: got %q, want %q", tt.opts, got, tt.want)
			}
		}
	}
}

func longLists(s *suite) {
	keys := make([]string, s.ListKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("%c/%c%03d/%04d", 'a'+i%7, 'k'+i%3, i%50, i)
	}
	next := make(chan string)
	var writers sync.WaitGroup
	for range 16 {
		writers.Go(func() {
			for key := range next {
				if _, err := storage.Set(s.ctx, s.store, key, nil, storage.SetOptions{}); err != nil {
					s.Errorf("storing %q: %v", key, err)
				}
			}
		})
	}
	for _, key := range keys {
		next <- key
	}
	close(next)
	writers.Wait()
	slices.Sort(keys)

	got, pages := s.list(storage.ListOptions{})
	if !slices.Equal(got, keys) {
		s.Errorf("listing %d keys: got %d, %s", len(keys), len(got), difference(got, keys))
	}
	if want := (len(keys) + storage.MaxListLimit - 1) / storage.MaxListLimit; pages < want {
		s.Errorf("%d keys came in %d pages, which must be at least %d", len(keys), pages, want)
	}
	if got, _ = s.list(storage.ListOptions{Limit: 333}); !slices.Equal(got, keys) {
		s.Errorf("listing %d keys, 333 a page: got %d, %s", len(keys), len(got), difference(got, keys))
	}
	var prefixes []string
	for _, key := range keys {
		if strings.HasPrefix(key, "c/") {
			prefixes = append(prefixes, key[:strings.LastIndex(key, "/")+1])
		}
	}
	prefixes = slices.Compact(prefixes)
	if got, _ = s.list(storage.ListOptions{Prefix: "c/", Delimiter: "/", Limit: 10}); !slices.Equal(got, prefixes) {
		s.Errorf("listing folders, 10 a page: %s", difference(got, prefixes))
	}
}

package s3

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// spread is a front over a mux whose keys lie on any of its members.
type spread struct {
	t       *testing.T
	mux     *muxengine.Mux
	handler *Handler
	members []*memory.Storage
}

func newSpread(t *testing.T, members int) *spread {
	t.Helper()
	s := &spread{t: t, handler: New(Options{})}
	config := muxengine.Config{Name: "assets", Mode: muxengine.ModeFailover, Keyspace: muxengine.KeyspaceSpread}
	for i := range members {
		s.members = append(s.members, memory.New(0))
		config.Members = append(config.Members, muxengine.Member{Name: fmt.Sprintf("m%d", i), Storage: s.members[i]})
	}
	var err error
	if s.mux, err = muxengine.New(config, muxengine.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.mux.Close)
	served := testConfig(s.mux)
	served.Auth, served.Sealer = AuthNone, reversing{}
	s.handler.SetConfig(served)
	return s
}

func (s *spread) store(member *memory.Storage, keys ...string) {
	s.t.Helper()
	for _, key := range keys {
		if _, err := storage.Set(s.t.Context(), member, key, nil, storage.SetOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// pages lists all pages of a query, as clients do, and returns their entries in
// the order in which they came. between is called after each page.
func (s *spread) pages(query string, size int, between func(page int)) []string {
	s.t.Helper()
	var all []string
	token := ""
	for page := 0; ; page++ {
		r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("/assets?list-type=2&max-keys=%d&%s%s", size, query, token), nil)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		var l listed
		if err := xml.Unmarshal(w.Body.Bytes(), &l); err != nil || w.Code != http.StatusOK {
			s.t.Fatalf("%d: %s", w.Code, w.Body)
		}
		entries := l.entries()
		if len(entries) > size || l.IsTruncated && len(entries) == 0 {
			s.t.Fatalf("a page of %d has %d entries", size, len(entries))
		}
		all = append(all, entries...)
		if !l.IsTruncated {
			return all
		}
		token = "&continuation-token=" + url.QueryEscape(l.NextContinuationToken)
		if between != nil {
			between(page)
		}
	}
}

// manyKeys are 10,000 keys, of which 7,500 lie under 2,500 prefixes, and the
// entries of a listing of them by that delimiter.
func manyKeys() (keys, folded []string) {
	for i := range 2500 {
		prefix := fmt.Sprintf("dir%04d/", i)
		keys = append(keys, prefix+"a", prefix+"b/c", prefix+"d", fmt.Sprintf("key%04d", i))
		folded = append(folded, prefix, fmt.Sprintf("key%04d", i))
	}
	slices.Sort(keys)
	slices.Sort(folded)
	return keys, folded
}

func TestMergedPagesAreTheUnionOfAllMembers(t *testing.T) {
	s := newSpread(t, 3)
	keys, folded := manyKeys()
	for i, key := range keys {
		s.store(s.members[i%3], key)
		if i%10 == 0 { // a copy that is not where it belongs
			s.store(s.members[(i+1)%3], key)
		}
	}
	within := func(all []string, prefix string) (some []string) {
		for _, one := range all {
			if strings.HasPrefix(one, prefix) {
				some = append(some, one)
			}
		}
		return some
	}
	for _, test := range []struct {
		size  int
		query string
		want  []string
	}{
		{1000, "", keys},
		{1000, "delimiter=%2F", folded},
		{7, "", keys},
		{7, "delimiter=%2F", folded},
		{1, "prefix=dir00", within(keys, "dir00")},
		{1, "delimiter=%2F&prefix=dir00", within(folded, "dir00")},
		{1, "delimiter=%2F&prefix=key01", within(folded, "key01")},
	} {
		if got := s.pages(test.query, test.size, nil); !slices.Equal(got, test.want) {
			t.Errorf("pages of %d, %q: %d entries, want %d; the first difference is at %d", test.size, test.query, len(got), len(test.want), differs(got, test.want))
		}
	}
}

func differs(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func TestMergedPagesGoOnWithAMemberThatIsAddedBetweenThem(t *testing.T) {
	keys, folded := manyKeys()
	for _, size := range []int{1, 7, 1000} {
		s := newSpread(t, 2)
		late := memory.New(0)
		prefix := ""
		if size == 1 {
			prefix = "dir00" // 100 pages
		}
		// Of each prefix the new member has one key, and one prefix in five is
		// its own alone.
		for i, key := range keys {
			switch {
			case i%4 == 3, strings.Contains(key, "0/") || strings.Contains(key, "5/"):
				s.store(late, key)
			default:
				s.store(s.members[i%2], key)
			}
		}
		last := ""
		got := s.pages("delimiter=%2F&prefix="+prefix, size, func(page int) {
			if page != 1 {
				return
			}
			if err := s.mux.AddBackend(muxengine.Member{Name: "late", Storage: late}); err != nil {
				t.Fatal(err)
			}
			last = "added"
		})
		if last == "" {
			t.Fatalf("pages of %d: the member was never added", size)
		}
		// What lies before the place where it came is not gone back for.
		at := got[2*size-1]
		var before, want []string
		for _, store := range s.members {
			before = append(before, entriesOf(t, store, prefix)...)
		}
		slices.Sort(before)
		for _, one := range slices.Compact(before) {
			if one <= at {
				want = append(want, one)
			}
		}
		for _, one := range folded {
			if one > at && strings.HasPrefix(one, prefix) {
				want = append(want, one)
			}
		}
		if !slices.Equal(got, want) {
			i := differs(got, want)
			t.Errorf("pages of %d: %d entries, want %d; the first difference is at %d: %q", size, len(got), len(want), i, got[i:min(i+3, len(got))])
		}
	}
}

// entriesOf lists one store by the delimiter.
func entriesOf(t *testing.T, store storage.Storage, prefix string) (entries []string) {
	t.Helper()
	options := storage.ListOptions{Prefix: prefix, Delimiter: "/"}
	for {
		page, err := store.List(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range page.Objects {
			entries = append(entries, object.Key)
		}
		entries = append(entries, page.Prefixes...)
		if page.Next == "" {
			return entries
		}
		options.After = page.Next
	}
}

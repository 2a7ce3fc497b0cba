package storage

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestPagesOfUploadsAddUpToTheWhole(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	uploads := []Upload{
		{"b", "3", at.Add(2)}, {"b", "9", at}, {"a", "1", at}, {"d/x", "5", at}, {"b", "1", at.Add(1)},
		{"d/y", "6", at}, {"e", "7", at}, {ReservedParts + "x", "8", at}, {"d/y", "2", at.Add(1)},
	}
	tests := map[string]struct {
		opts ListUploadsOptions
		want []string
	}{
		"all":                    {ListUploadsOptions{}, []string{"a 1", "b 9", "b 1", "b 3", "d/x 5", "d/y 6", "d/y 2", "e 7"}},
		"folded":                 {ListUploadsOptions{Delimiter: "/"}, []string{"a 1", "b 9", "b 1", "b 3", "d/", "e 7"}},
		"prefix":                 {ListUploadsOptions{Prefix: "d/", Delimiter: "/"}, []string{"d/x 5", "d/y 6", "d/y 2"}},
		"after a key":            {ListUploadsOptions{AfterKey: "b"}, []string{"d/x 5", "d/y 6", "d/y 2", "e 7"}},
		"after an upload":        {ListUploadsOptions{AfterKey: "b", AfterID: "1"}, []string{"b 3", "d/x 5", "d/y 6", "d/y 2", "e 7"}},
		"after one that is gone": {ListUploadsOptions{AfterKey: "b", AfterID: "2", Delimiter: "/"}, []string{"b 9", "b 1", "b 3", "d/", "e 7"}},
		"after a prefix":         {ListUploadsOptions{AfterKey: "d/", Delimiter: "/"}, []string{"e 7"}},
	}
	for name, tt := range tests {
		for limit := 1; limit < 10; limit++ {
			var got []string
			opts := tt.opts
			opts.Limit = limit
			for range 20 {
				page := PageUploads(uploads, nil, opts)
				if n := len(page.Uploads) + len(page.Prefixes); n > limit {
					t.Fatalf("%s: %d entries in a page of %d", name, n, limit)
				}
				var entries []string
				for _, u := range page.Uploads {
					entries = append(entries, u.Key+" "+u.ID)
				}
				entries = append(entries, page.Prefixes...)
				if len(page.Prefixes) > 0 {
					slices.SortStableFunc(entries, func(a, b string) int { return int(a[0]) - int(b[0]) })
				}
				got = append(got, entries...)
				if page.NextKey == "" {
					break
				}
				opts.AfterKey, opts.AfterID = page.NextKey, page.NextID
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("%s, by %d: got %q, want %q", name, limit, got, tt.want)
			}
		}
	}
}

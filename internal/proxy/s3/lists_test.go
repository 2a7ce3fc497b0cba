package s3

import (
	"context"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// listed is either version's answer.
type listed struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Name                  string
	Prefix                string
	Delimiter             string
	Marker                string
	NextMarker            string
	StartAfter            string
	ContinuationToken     string
	NextContinuationToken string
	EncodingType          string
	KeyCount              *int
	MaxKeys               int
	IsTruncated           bool
	Contents              []struct {
		Key, LastModified, ETag, StorageClass string
		Size                                  int64
		Owner                                 *struct{ ID string }
	}
	CommonPrefixes []struct{ Prefix string }
}

func (l listed) entries() (out []string) {
	for _, c := range l.Contents {
		out = append(out, c.Key)
	}
	for _, p := range l.CommonPrefixes {
		out = append(out, p.Prefix)
	}
	slices.Sort(out)
	return out
}

func (f *front) list(query string) listed {
	f.t.Helper()
	a := f.want(http.StatusOK, http.MethodGet, "/assets?"+query, nil)
	var l listed
	if err := xml.Unmarshal(a.body, &l); err != nil {
		f.t.Fatalf("%s: %v", a.body, err)
	}
	return l
}

func TestListingsPageThroughEverythingOnce(t *testing.T) {
	for name, change := range map[string]func(*Config){"clear": func(*Config) {}, "sealed": func(c *Config) { c.Sealer = reversing{} }} {
		f := newFront(t, nil, change)
		var want []string
		for i := range 25 {
			f.put(fmt.Sprintf("dir%02d/a", i), []byte("x"), storage.SetOptions{})
			f.put(fmt.Sprintf("dir%02d/b", i), []byte("x"), storage.SetOptions{})
			f.put(fmt.Sprintf("key%02d+ü ", i), []byte("x"), storage.SetOptions{})
			want = append(want, fmt.Sprintf("dir%02d/", i), fmt.Sprintf("key%02d+ü ", i))
		}
		slices.Sort(want)
		for _, size := range []string{"1", "7", "1000"} {
			var v1, v2 []string
			for marker := ""; ; {
				l := f.list("delimiter=%2F&max-keys=" + size + "&marker=" + url.QueryEscape(marker))
				v1 = append(v1, l.entries()...)
				if marker = l.NextMarker; !l.IsTruncated {
					break
				}
			}
			for token := ""; ; {
				l := f.list("list-type=2&delimiter=%2F&max-keys=" + size + token)
				v2 = append(v2, l.entries()...)
				if *l.KeyCount != len(l.entries()) {
					t.Errorf("KeyCount %d, %d entries", *l.KeyCount, len(l.entries()))
				}
				if token = "&continuation-token=" + url.QueryEscape(l.NextContinuationToken); !l.IsTruncated {
					break
				}
			}
			if !slices.Equal(v1, want) || !slices.Equal(v2, want) {
				t.Errorf("%s, pages of %s:\nv1 %q\nv2 %q", name, size, v1, v2)
			}
		}
	}
}

// reversing stands for a sealer.
type reversing struct{}

func (reversing) Seal(_ string, plain []byte) []byte {
	out := slices.Clone(plain)
	slices.Reverse(out)
	return out
}

func (r reversing) Open(purpose string, sealed []byte) ([]byte, error) {
	if !strings.Contains(purpose, testBucket) {
		return nil, errors.New("sealed for something else")
	}
	return r.Seal(purpose, sealed), nil
}

func TestListingSaysWhatWasAsked(t *testing.T) {
	f := newFront(t, nil)
	f.put("a b/ü+1", []byte("data"), storage.SetOptions{})
	l := f.list("list-type=2&prefix=a%20b%2F&delimiter=%2F&start-after=a&encoding-type=url&fetch-owner=true")
	if l.Name != testBucket || l.Prefix != "a%20b/" || l.Delimiter != "/" || l.StartAfter != "a" || l.EncodingType != "url" || l.MaxKeys != 1000 || l.IsTruncated {
		t.Errorf("got %+v", l)
	}
	if len(l.Contents) != 1 {
		t.Fatalf("got %+v", l)
	}
	c := l.Contents[0]
	if c.Key != "a%20b/%C3%BC%2B1" || c.Size != 4 || c.StorageClass != "STANDARD" || c.Owner == nil || !strings.HasPrefix(c.ETag, `"`) || !strings.HasSuffix(c.LastModified, "Z") {
		t.Errorf("got %+v", c)
	}
	if l := f.list("list-type=2"); l.Contents[0].Key != "a b/ü+1" || l.Contents[0].Owner != nil {
		t.Errorf("got %+v", l.Contents[0])
	}
	if l := f.list(""); l.Contents[0].Owner == nil || l.KeyCount != nil {
		t.Errorf("version 1: got %+v", l)
	}
	if l := f.list("list-type=2&max-keys=0"); len(l.Contents) != 0 || l.IsTruncated || l.MaxKeys != 0 {
		t.Errorf("max-keys 0: got %+v", l)
	}
	if l := f.list("list-type=2&max-keys=5000"); l.MaxKeys != 1000 {
		t.Errorf("max-keys 5000: got %+v", l)
	}
	if l := f.list("list-type=2&prefix=zzz"); len(l.Contents) != 0 || *l.KeyCount != 0 {
		t.Errorf("got %+v", l)
	}
}

func TestListingRefusesWhatItCannotMean(t *testing.T) {
	f := newFront(t, nil, func(c *Config) { c.Sealer = reversing{} })
	for _, query := range []string{
		"max-keys=-1", "max-keys=x", "encoding-type=base64", "list-type=2&continuation-token=", "list-type=2&continuation-token=%25%25",
		"list-type=2&continuation-token=" + base64.RawURLEncoding.EncodeToString([]byte("\x01clear")),
		"list-type=2&continuation-token=" + base64.RawURLEncoding.EncodeToString([]byte("\x09new")), "prefix=%ff", "marker=a%00",
	} {
		f.refused(http.StatusBadRequest, "InvalidArgument", http.MethodGet, "/assets?"+query, nil)
	}
}

func TestReservedKeysAreHiddenFromListings(t *testing.T) {
	store := memory.New(0)
	shown := []string{".storagemus", ".storagemux", ".storagemux0", "a"}
	for _, key := range shown {
		if _, err := storage.Set(t.Context(), store, key, nil, storage.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// A store that hides nothing: all keys in one page each, reserved ones too.
	keys := []string{".storagemus", ".storagemux", ".storagemux/parts/1", ".storagemux/tmp/1", ".storagemux/tmp/2", ".storagemux0", "a"}
	f := newFront(t, override{Storage: store, list: func(_ context.Context, options storage.ListOptions) (storage.ListPage, error) {
		var page storage.ListPage
		for _, key := range keys {
			if key > options.After {
				page.Objects = append(page.Objects, storage.Info{Key: key})
				if len(page.Objects) == options.PageLimit() {
					page.Next = key
					break
				}
			}
		}
		return page, nil
	}})
	for _, size := range []string{"1", "2", "1000"} {
		var got []string
		for token := ""; ; {
			l := f.list("list-type=2&max-keys=" + size + token)
			got = append(got, l.entries()...)
			if token = "&continuation-token=" + l.NextContinuationToken; !l.IsTruncated {
				break
			}
		}
		if !slices.Equal(got, shown) {
			t.Errorf("pages of %s: %q", size, got)
		}
	}
	page := hideReserved(storage.ListPage{Prefixes: []string{".storagemux/", "a/"}})
	if !slices.Equal(page.Prefixes, []string{"a/"}) {
		t.Errorf("got %q", page.Prefixes)
	}
}

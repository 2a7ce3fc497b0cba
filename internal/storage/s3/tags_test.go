package s3

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
)

func TestTagsOfServersThatKnowNoneOrHaveNone(t *testing.T) {
	status, code := http.StatusNotImplemented, "NotImplemented"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code></Error>")
	}))
	defer server.Close()
	s := over(t, server.URL)
	tags := map[string]string{"a": "1"}
	_, err := s.GetTags(t.Context(), "k")
	for doing, err := range map[string]error{
		"reading": err, "giving": s.SetTags(t.Context(), "k", tags), "removing": s.SetTags(t.Context(), "k", nil),
	} {
		if storage.CodeOf(err) != storage.CodeUnsupported {
			t.Errorf("%s: %v", doing, err)
		}
	}
	status, code = http.StatusNotFound, "NoSuchTagSet"
	if got, err := s.GetTags(t.Context(), "k"); err != nil || len(got) != 0 {
		t.Errorf("of an object without tags: %v, %v", got, err)
	}
	code = "NoSuchKey"
	if _, err := s.GetTags(t.Context(), "k"); storage.CodeOf(err) != storage.CodeKeyNotFound {
		t.Errorf("of no object: %v", err)
	}
}

func TestACopySaysWhichTagsItIsToHave(t *testing.T) {
	var count, directive, given string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"source"`)
		if r.Method == http.MethodHead {
			w.Header().Set("Content-Length", "1")
			w.Header().Set("X-Amz-Tagging-Count", count)
			return
		}
		directive, given = r.Header.Get("X-Amz-Tagging-Directive"), r.Header.Get("X-Amz-Tagging")
		_, _ = io.WriteString(w, `<CopyObjectResult><ETag>"copy"</ETag></CopyObjectResult>`)
	}))
	defer server.Close()
	s := over(t, server.URL)
	for name, tc := range map[string]struct {
		count, directive, given string
		opts                    storage.CopyOptions
	}{
		"the source's":             {"2", "", "", storage.CopyOptions{}},
		"others":                   {"2", "REPLACE", "a=1", storage.CopyOptions{Replace: true, Tags: map[string]string{"a": "1"}}},
		"none of the source's":     {"2", "REPLACE", "", storage.CopyOptions{Replace: true}},
		"none where there is none": {"", "", "", storage.CopyOptions{Replace: true}},
	} {
		count = tc.count
		if _, err := s.CopyObject(t.Context(), "k", "source", tc.opts); err != nil || directive != tc.directive || given != tc.given {
			t.Errorf("%s: %q %q, %v", name, directive, given, err)
		}
	}
}

package s3

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

const emptyList = `<ListPartsResult><IsTruncated>false</IsTruncated>` +
	`<Part><PartNumber>1</PartNumber><ETag>"e1"</ETag><Size>7</Size></Part></ListPartsResult>`

func TestAnUploadIsCompleteOnlyIfTheStoreSaysSo(t *testing.T) {
	result := `<CompleteMultipartUploadResult><ETag>"whole-1"</ETag></CompleteMultipartUploadResult>`
	tests := map[string]struct {
		status  int
		body    string
		want    storage.Code
		outcome storage.Outcome
	}{
		"done":                          {200, result, "", storage.OutcomeNone},
		"done, after blanks":            {200, "  \n " + result, "", storage.OutcomeNone},
		"an error after 200":            {200, `<?xml version="1.0"?><Error><Code>InternalError</Code></Error>`, storage.CodeUnavailable, storage.OutcomeNone},
		"an error after blanks":         {200, "   \n<Error><Code>PreconditionFailed</Code></Error>", storage.CodePreconditionFailed, storage.OutcomeNone},
		"slow down after 200":           {200, `<Error><Code>SlowDown</Code></Error>`, storage.CodeThrottled, storage.OutcomeNone},
		"nothing after 200":             {200, "", storage.CodeUnavailable, storage.OutcomeUnknown},
		"half of it after 200":          {200, result[:len(result)/2], storage.CodeUnavailable, storage.OutcomeUnknown},
		"something else after 200":      {200, "<html>login</html>", storage.CodeUnavailable, storage.OutcomeUnknown},
		"an error that is one":          {503, "", storage.CodeUnavailable, storage.OutcomeNone},
		"a 404 without a word about it": {404, "", storage.CodeUploadNotFound, storage.OutcomeNone},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					fmt.Fprint(w, emptyList)
					return
				}
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			defer server.Close()
			info, err := over(t, server.URL).CompleteUpload(t.Context(), "k", "u", []storage.Part{{Number: 1, ETag: "e1"}}, storage.SetOptions{})
			if storage.CodeOf(err) != tt.want || outcomeOf(err) != tt.outcome {
				t.Errorf("got %v with outcome %d, want %q with %d", err, outcomeOf(err), tt.want, tt.outcome)
			}
			if err == nil && (info.ETag != "whole-1" || info.Size != 7 || info.Key != "k") {
				t.Errorf("got %+v", info)
			}
		})
	}
}

func TestACopyThatFailsAfterItsHeadersIsAnError(t *testing.T) {
	for body, want := range map[string]storage.Code{
		`<CopyObjectResult><ETag>"e"</ETag></CopyObjectResult>`: "",
		`<Error><Code>InternalError</Code></Error>`:             storage.CodeUnavailable,
		``: storage.CodeUnavailable,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `"source"`)
			if r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source-If-Match") != `"source"` {
				t.Errorf("the source is not held to its tag: %v", r.Header)
			}
			fmt.Fprint(w, body)
		}))
		s := over(t, server.URL)
		if _, err := s.CopyObject(t.Context(), "k", "source", storage.CopyOptions{}); storage.CodeOf(err) != want {
			t.Errorf("%q: got %v, want %q", body, err, want)
		}
		server.Close()
	}
}

// The parts of one page and of the next, and the uploads of a server that takes
// no upload-id-marker, as versitygw does not.
func TestPagesOfPartsAreReadToTheirEnd(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after, _ := strconv.Atoi(r.URL.Query().Get("part-number-marker"))
		fmt.Fprint(w, "<ListPartsResult>")
		for i := after + 1; i <= min(after+1000, 2500); i++ {
			fmt.Fprintf(w, `<Part><PartNumber>%d</PartNumber><ETag>"e%d"</ETag><Size>5242880</Size></Part>`, i, i)
		}
		fmt.Fprintf(w, "<IsTruncated>%t</IsTruncated></ListPartsResult>", after+1000 < 2500)
	}))
	defer server.Close()
	parts, err := over(t, server.URL).allParts(t.Context(), "ListParts", "k", "u")
	if err != nil || len(parts) != 2500 || parts[2499].Number != 2500 {
		t.Errorf("%d parts, %v", len(parts), err)
	}
	size, err := sizeOf(parts, parts)
	if err != nil || size != 2500*storage.MinPartBytes {
		t.Errorf("%d bytes, %v", size, err)
	}
}

func noise(size int64) []byte {
	data, _ := io.ReadAll(io.LimitReader(rand.NewChaCha8([32]byte{9}), size))
	return data
}

// Each case makes another layout of what is copied, read and sent.
func TestPartialWritesKeepWhatTheyDoNotTouch(t *testing.T) {
	server := servers.Versitygw(t)
	s := open(t, server)
	defer s.Close()
	const mib = 1 << 20
	tests := map[string]struct{ before, offset, length int64 }{
		"small":                             {1000, 10, 20},
		"at the start of a large one":       {18 * mib, 0, 100},
		"near the start of a large one":     {18 * mib, 4*mib + 7, 100},
		"in the middle":                     {18 * mib, 7*mib + 3, 100},
		"more than a part in the middle":    {18 * mib, 6 * mib, 5*mib + 1},
		"exactly a part":                    {18 * mib, 5 * mib, 5 * mib},
		"to the end":                        {18 * mib, 17 * mib, mib},
		"over the end":                      {18 * mib, 17 * mib, 7 * mib},
		"beyond the end":                    {6 * mib, 7 * mib, 10},
		"far beyond the end of a small":     {100, 12 * mib, 10},
		"over all of it":                    {6 * mib, 0, 12 * mib},
		"of an object of exactly a part":    {5 * mib, 5*mib - 1, 1},
		"after an object of exactly a part": {5 * mib, 5 * mib, 1},
		"of nothing":                        {-1, 6 * mib, 3},
	}
	for name, tt := range tests {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, length known %t", name, known), func(t *testing.T) {
				headers := storage.Headers{ContentType: "text/x-kept", ContentLanguage: "de"}
				metadata := map[string]string{"color": "blue", storage.VersionMetadata: "1"}
				var want []byte
				if tt.before >= 0 {
					want = noise(tt.before)
					if _, err := storage.Set(t.Context(), s, "key", want, storage.SetOptions{Headers: headers, Metadata: metadata}); err != nil {
						t.Fatal(err)
					}
				} else if err := s.Delete(t.Context(), "key"); err != nil {
					t.Fatal(err)
				}
				written := bytes.Repeat([]byte("w"), int(tt.length))
				want = append(slices.Clone(want), make([]byte, max(0, tt.offset+tt.length-int64(len(want))))...)
				copy(want[tt.offset:], written)
				length := tt.length
				if !known {
					length = -1
				}
				info, err := s.SetPartial(t.Context(), "key", tt.offset, storage.Stream(bytes.NewReader(written), length))
				if err != nil {
					t.Fatal(err)
				}
				got, stat, err := storage.Get(t.Context(), s, "key")
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("read %d bytes, want %d, %v, equal %t", len(got), len(want), err, bytes.Equal(got, want))
				}
				if info.Size != stat.Size || info.ETag != stat.ETag {
					t.Errorf("returned %+v, stat %+v", info, stat)
				}
				if tt.before >= 0 && (stat.Headers != headers || stat.Metadata["color"] != "blue" || len(stat.Metadata) != 1) {
					t.Errorf("headers %+v, metadata %v", stat.Headers, stat.Metadata)
				}
			})
		}
	}
	if left := server.Debris(t, s.target.bucket); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestAPartialWriteKeepsTagsAndClass(t *testing.T) {
	var created http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case r.Method == http.MethodHead:
			for name, value := range map[string]string{
				"ETag": `"old"`, "Content-Length": "6", "X-Amz-Storage-Class": "STANDARD_IA", "X-Amz-Tagging-Count": "2",
				"X-Amz-Server-Side-Encryption": "aws:kms", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "key",
			} {
				w.Header().Set(name, value)
			}
		case r.URL.Query().Has("tagging"):
			fmt.Fprint(w, `<Tagging><TagSet><Tag><Key>a b</Key><Value>1&amp;2</Value></Tag><Tag><Key>c</Key><Value></Value></Tag></TagSet></Tagging>`)
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Range", "bytes 0-1/6")
			w.Header().Set("Content-Length", "2")
			if r.Header.Get("Range") != "bytes=0-1" {
				w.Header().Set("Content-Range", "bytes 3-5/6")
				w.Header().Set("Content-Length", "3")
			}
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "abc"[:map[bool]int{true: 2, false: 3}[r.Header.Get("Range") == "bytes=0-1"]])
		default:
			created = r.Header
			w.Header().Set("ETag", `"new"`)
		}
	}))
	defer server.Close()
	info, err := over(t, server.URL).SetPartial(t.Context(), "k", 2, storage.Bytes([]byte("x")))
	if err != nil || info.Size != 6 {
		t.Fatalf("%+v, %v", info, err)
	}
	for name, want := range map[string]string{
		"X-Amz-Storage-Class": "STANDARD_IA", "X-Amz-Tagging": "a+b=1%262&c=", "X-Amz-Server-Side-Encryption": "aws:kms",
		"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id": "key", "If-Match": `"old"`,
	} {
		if got := created.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestAPartialWriteGivesUpWhereOthersKeepChangingTheObject(t *testing.T) {
	puts := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("ETag", `"old"`)
		w.Header().Set("Content-Length", "1")
		if r.Method == http.MethodPut {
			w.Header().Set("Content-Length", "0")
			puts++
			w.WriteHeader(http.StatusPreconditionFailed)
		}
	}))
	defer server.Close()
	_, err := over(t, server.URL).SetPartial(t.Context(), "k", 0, storage.Bytes([]byte("x")))
	var e *storage.Error
	if !errors.As(err, &e) || e.Code != storage.CodeUnavailable || e.Outcome != storage.OutcomeNone || errors.Is(err, storage.ErrPreconditionFailed) {
		t.Errorf("got %v", err)
	}
	if puts != partialTries {
		t.Errorf("%d tries, want %d", puts, partialTries)
	}
}

func TestCopiesAreCutIntoPiecesThatStoresTake(t *testing.T) {
	for _, size := range []int64{0, 1, maxPut - 1, maxPut, maxPut + 1, 3*maxPut - 1, 3 * maxPut} {
		at := int64(7)
		for _, piece := range (span{7, 7 + size}).split(maxPut) {
			if piece.first != at || piece.end <= piece.first || piece.end-piece.first > maxPut {
				t.Errorf("%d bytes: piece %+v after %d", size, piece, at)
			}
			if size > maxPut && piece.end-piece.first < storage.MinPartBytes {
				t.Errorf("%d bytes: the piece %+v is too small for a part", size, piece)
			}
			at = piece.end
		}
		if at != 7+size {
			t.Errorf("%d bytes: pieces end at %d", size, at)
		}
	}
}

func TestUploadsOfOneKeyThatFillPagesAreAllListed(t *testing.T) {
	const perKey = 3
	type upload struct{ Key, UploadId string }
	var all []upload
	for _, key := range []string{"p/a", "p/b", "p/b/c", "p/d"} {
		for i := range perKey {
			all = append(all, upload{key, fmt.Sprint("id", i)})
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		var result struct {
			XMLName            xml.Name `xml:"ListMultipartUploadsResult"`
			IsTruncated        bool
			NextKeyMarker      string
			NextUploadIdMarker string
			Upload             []upload
		}
		for _, u := range all {
			marker, id := q.Get("key-marker"), q.Get("upload-id-marker")
			if !strings.HasPrefix(u.Key, q.Get("prefix")) || u.Key < marker || u.Key == marker && (id == "" || u.UploadId <= id) {
				continue
			}
			if len(result.Upload) == 2 { // a store may give less than it is asked for
				result.IsTruncated = true
				break
			}
			result.Upload = append(result.Upload, u)
			result.NextKeyMarker, result.NextUploadIdMarker = u.Key, u.UploadId
		}
		_ = xml.NewEncoder(w).Encode(result)
	}))
	defer server.Close()
	s := over(t, server.URL, func(c *Config) { c.Prefix = "p/" })
	for _, limit := range []int{1, 2, 5, 100} {
		var got []upload
		opts := storage.ListUploadsOptions{Limit: limit}
		for range 100 {
			page, err := s.ListUploads(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range page.Uploads {
				got = append(got, upload{"p/" + u.Key, u.ID})
			}
			if page.NextKey == "" {
				break
			}
			opts.AfterKey, opts.AfterID = page.NextKey, page.NextID
		}
		if !slices.Equal(got, all) {
			t.Errorf("by %d: got %v, want %v", limit, got, all)
		}
	}
}

package proxy

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
)

// minioClient talks to the front of r.
func minioClient(t *testing.T, r *running) *minio.Core {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := minio.NewCore(r.Addr("s3").String(), &minio.Options{
		Creds: credentials.NewStaticV4("any", "thing", ""), Region: "us-east-1", Transport: transport, MaxRetries: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// putInParts uploads 5 MiB and a rest.
func putInParts(t *testing.T, c *minio.Core, key string) ([]byte, error) {
	t.Helper()
	data := make([]byte, 5<<20+1000)
	_, _ = rand.NewChaCha8([32]byte{7}).Read(data)
	_, err := c.Client.PutObject(t.Context(), "assets", key, bytes.NewReader(data), int64(len(data)),
		minio.PutObjectOptions{PartSize: 5 << 20, ContentType: "a/b", UserMetadata: map[string]string{"color": "red"}})
	return data, err
}

// withWeb is a mux over the ladder of those candidates, where web is a server to
// read from.
func withWeb(web string, policy muxconfig.Fallback, candidates ...string) *muxconfig.Document {
	d := testDocument(1, "a", "b")
	for i := range d.Backends {
		d.Backends[i].Memory.SizeLimit = 1 << 30
	}
	rungs := d.Muxes[0]
	rungs.Name, rungs.UID, rungs.Mode = muxconfig.LadderName("ladder"), "uid-ladder", muxconfig.ModeFallback
	rungs.Members = nil
	f := policy
	f.Walk, f.DeleteMode, f.ListFailureMode, f.MaxCandidates, f.MaxDepth = "sequential", "any", "partial", 16, 4
	d.Muxes[0].Members = []muxconfig.Member{{Name: "rungs", Backend: "ladder"}}
	u, err := uri.Build(candidates, 0)
	if err != nil {
		panic(err)
	}
	leaves, err := u.Leaves(16, 4)
	if err != nil {
		panic(err)
	}
	for _, text := range leaves {
		member := muxconfig.Member{Name: "web", Backend: muxconfig.CandidateName("ladder", "web")}
		if at, err := uri.Locate(text); err == nil && at.Scheme == "backend" {
			member = muxconfig.Member{Name: "backend." + at.Name, Backend: at.Name}
		} else {
			d.Backends = append(d.Backends, muxconfig.Backend{
				Name: member.Backend, UID: muxconfig.CandidateUID("uid-ladder", "web"), MaxInFlight: 16,
				HTTP: &muxconfig.HTTP{URL: web, Flavor: muxconfig.FlavorPlain, Guard: &muxconfig.Guard{Hosts: []string{"127.0.0.1"}, AllowPrivate: true}},
			})
		}
		rungs.Members = append(rungs.Members, member)
		f.Candidates = append(f.Candidates, muxconfig.Candidate{URI: text, Member: member.Name})
	}
	f.URI = u.String()
	d.Muxes = append(d.Muxes, rungs)
	d.Backends = append(d.Backends, muxconfig.Backend{Name: "ladder", UID: "uid-ladder", MaxInFlight: 16, Fallback: &f})
	slices.SortFunc(d.Backends, func(a, b muxconfig.Backend) int { return strings.Compare(a.Name, b.Name) })
	return d
}

// roomy lets bodies be kept whole.
func roomy(o *Options) { o.Spool.Memory = 64 << 20 }

// webServer is a server that has an answer for everything, as servers of
// applications have, and keeps what it was asked for.
type webServer struct {
	mu    sync.Mutex
	asked []string
}

func (w *webServer) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.asked = append(w.asked, r.Method+" "+r.URL.Path)
	w.mu.Unlock()
	_, _ = io.WriteString(out, "<html>")
}

func TestUploadInPartsReachesEveryCandidateThatAWriteWould(t *testing.T) {
	r := start(t, withLadder(1, nil), roomy)
	data, err := putInParts(t, minioClient(t, r), "k")
	if err != nil {
		t.Fatal(err)
	}
	now := r.applier.served.Load()
	for name, key := range map[string]string{"a": "base/k", "b": "k", "c": "k", "d": "k"} {
		got, info, err := storage.Get(t.Context(), now.memory(name), key)
		if err != nil || !bytes.Equal(got, data) || info.Headers.ContentType != "a/b" || info.Metadata["color"] != "red" {
			t.Errorf("%s holds %d bytes and %+v under %s, %v", name, len(got), info, key, err)
		}
		for _, opts := range []storage.ListOptions{{}, {Prefix: storage.ReservedParts, Reserved: true}} {
			page, err := now.memory(name).List(t.Context(), opts)
			// What an upload became is known for a day.
			if err != nil || len(page.Objects) != 1 {
				t.Errorf("%s lists %+v under %q, %v", name, page.Objects, opts.Prefix, err)
			}
		}
	}
}

func TestPartsOfAnUploadAreSeenUnderTheirUploadOnly(t *testing.T) {
	r := start(t, withLadder(1, nil), roomy)
	c := minioClient(t, r)
	id, err := c.NewMultipartUpload(t.Context(), "assets", "k", minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutObjectPart(t.Context(), "assets", "k", id, 1, strings.NewReader("part"), 4, minio.PutObjectPartOptions{}); err != nil {
		t.Fatal(err)
	}
	parts, err := c.ListObjectParts(t.Context(), "assets", "k", id, 0, 10)
	if err != nil || len(parts.ObjectParts) != 1 || parts.ObjectParts[0].Size != 4 {
		t.Fatalf("got %+v, %v", parts, err)
	}
	uploads, err := c.ListMultipartUploads(t.Context(), "assets", "", "", "", "", 10)
	if err != nil || len(uploads.Uploads) != 1 || uploads.Uploads[0].Key != "k" {
		t.Fatalf("got %+v, %v", uploads, err)
	}
	now := r.applier.served.Load()
	for _, name := range []string{"a", "b", "c", "d"} {
		if page, err := now.memory(name).List(t.Context(), storage.ListOptions{}); err != nil || len(page.Objects) != 0 {
			t.Errorf("%s shows %+v, %v", name, page.Objects, err)
		}
	}
	if err := c.AbortMultipartUpload(t.Context(), "assets", "k", id); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		page, err := now.memory(name).List(t.Context(), storage.ListOptions{Prefix: storage.ReservedParts, Reserved: true})
		if err != nil || len(page.Objects) != 0 {
			t.Errorf("%s keeps %+v, %v", name, page.Objects, err)
		}
	}
}

func TestDrainOfALadderWaitsForItsUploadsInParts(t *testing.T) {
	s := newServer(t, nil)
	mustTake(t, s, withLadder(1, nil))
	now := s.applier.served.Load()
	if _, err := now.mux.CreateUpload(t.Context(), "k", storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	if open := s.drains.openUploads(t.Context(), laddersUnder(now, &now.members[0]), time.Now().Add(-time.Minute)); open != 1 {
		t.Fatalf("%d uploads are open", open)
	}
}

func TestLadderTakesUploadsInPartsWhereAWriteCanGo(t *testing.T) {
	inner, _ := uri.Build([]string{"http://127.0.0.1/w/", "backend://b"}, 0)
	all, first := muxconfig.Fallback{WriteMode: "all", ErrorClass: "transient"}, muxconfig.Fallback{WriteMode: "first-success", ErrorClass: "transient"}
	firstAny := muxconfig.Fallback{WriteMode: "first-success", ErrorClass: "any"}
	for name, tc := range map[string]struct {
		policy     muxconfig.Fallback
		candidates []string
		refused    string // "" where it is taken
	}{
		"to the first, a store before a web server": {first, []string{"backend://a/base", "http://127.0.0.1/w/"}, ""},
		"to the first, a web server before a store": {first, []string{"http://127.0.0.1/w/", "backend://a"}, "http://127.0.0.1/w/ cannot be written to"},
		"past a web server with any":                {firstAny, []string{"http://127.0.0.1/w/", "backend://a/base"}, ""},
		"to the first, a nested web server":         {first, []string{inner.String(), "backend://a"}, "http://127.0.0.1/w/ cannot be written to"},
		"past a nested web server with any":         {firstAny, []string{inner.String(), "backend://a"}, ""},
		"to all with a web server":                  {all, []string{"backend://a", "http://127.0.0.1/w/"}, "every write goes to all candidates"},
		"to web servers only":                       {firstAny, []string{"http://127.0.0.1/w/"}, "no candidate can be written to"},
		"to all without a web server":               {all, []string{"backend://a", "backend://b/base"}, ""},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			web := &webServer{}
			server := httptest.NewServer(web)
			defer server.Close()
			r := start(t, withWeb(server.URL+"/w/", tc.policy, tc.candidates...), roomy)
			c := minioClient(t, r)
			data, err := putInParts(t, c, "k")
			if tc.refused != "" {
				if answer := minio.ToErrorResponse(err); answer.StatusCode != http.StatusNotImplemented {
					t.Errorf("the front answers %v", err)
				}
				_, err := r.applier.served.Load().mux.CreateUpload(t.Context(), "k", storage.SetOptions{})
				if storage.CodeOf(err) != storage.CodeUnsupported || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("the mux answers %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			now := r.applier.served.Load()
			held := 0
			for name, keys := range map[string][]string{"a": {"k", "base/k"}, "b": {"k", "base/k"}} {
				for _, key := range keys {
					if got, _, err := storage.Get(t.Context(), now.memory(name), key); err == nil && bytes.Equal(got, data) {
						held++
					}
				}
			}
			if want := map[string]int{"all": 2, "first-success": 1}[tc.policy.WriteMode]; held != want {
				t.Errorf("%d candidates hold the object, not %d", held, want)
			}
			for _, asked := range web.asked {
				if strings.Contains(asked, storage.ReservedPrefix) {
					t.Errorf("the web server was asked %s", asked)
				}
			}
		})
	}
}

func TestDocumentedLadderKeepsTheContractOfAStoreWithUploadsInParts(t *testing.T) {
	for _, policy := range []muxconfig.Fallback{{WriteMode: "all", ErrorClass: "transient"}, {WriteMode: "first-success", ErrorClass: "transient"}} {
		t.Run(policy.WriteMode, func(t *testing.T) {
			storagetest.Run(t, func(t *testing.T) storage.Storage {
				s := newServer(t, roomy)
				mustTake(t, s, withWeb("", policy, "backend://a/base", "backend://b"))
				return s.applier.served.Load().ladders["uid-ladder"].Storage
			}, storagetest.Options{MaxBody: 1 << 20, ListKeys: 1100, Keys: func(key string) storagetest.KeyFate {
				if len(key) > storage.MaxKeyBytes-len("base/") {
					return storagetest.RefusedKey
				}
				return storagetest.Held
			}})
		})
	}
}

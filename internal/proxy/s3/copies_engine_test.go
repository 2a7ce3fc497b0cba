package s3

import (
	"bytes"
	"context"
	"encoding/xml"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// insider is a store that copies inside itself, and counts the bodies that come
// from it and go to it.
type insider struct {
	*memory.Storage
	mu                  sync.Mutex
	read, sent, copied  int
	beforeCopy, onceGet func()
	refuses             bool
}

func newInsider() *insider { return &insider{Storage: memory.New(0)} }

func (i *insider) count(n *int, hook *func()) {
	i.mu.Lock()
	*n++
	var do func()
	if hook != nil {
		do, *hook = *hook, nil
	}
	i.mu.Unlock()
	if do != nil {
		do()
	}
}

func (i *insider) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	i.count(&i.read, &i.onceGet)
	return i.Storage.GetStream(ctx, key, opts)
}

func (i *insider) SetStream(ctx context.Context, key string, body storage.Body, opts storage.SetOptions) (storage.Info, error) {
	i.count(&i.sent, nil)
	return i.Storage.SetStream(ctx, key, body, opts)
}

func (i *insider) source(ctx context.Context, key string, part *storage.Range, same func(storage.Info) bool) ([]byte, storage.Info, error) {
	i.count(&i.copied, &i.beforeCopy)
	if i.refuses {
		return nil, storage.Info{}, storage.Errorf(storage.CodeUnsupported, "CopyObject", "not today")
	}
	info, err := i.Stat(ctx, key, storage.StatOptions{})
	if err == nil && same != nil && !same(info) {
		err = storage.Errorf(storage.CodePreconditionFailed, "CopyObject", "another object")
	}
	if err != nil {
		return nil, info, err
	}
	data, _, err := storage.Get(ctx, i.Storage, key)
	if err == nil && part != nil {
		var offset, length int64
		if offset, length, err = part.Resolve(info.Size); err == nil {
			data = data[offset : offset+length]
		}
	}
	return data, info, err
}

func (i *insider) CopyObject(ctx context.Context, key, source string, opts storage.CopyOptions) (storage.Info, error) {
	data, info, err := i.source(ctx, source, nil, opts.Same)
	if err != nil {
		return storage.Info{}, err
	}
	return storage.Set(ctx, i.Storage, key, data, storage.SetOptions{
		Headers: opts.Headers, Metadata: opts.Metadata, Tags: opts.Tags, Checksums: info.Checksums,
	})
}

func (i *insider) UploadPartCopy(ctx context.Context, key, upload string, number int, source string, opts storage.CopyPartOptions) (storage.Part, error) {
	data, _, err := i.source(ctx, source, opts.Range, opts.Same)
	if err != nil {
		return storage.Part{}, err
	}
	return i.UploadPart(ctx, key, upload, number, storage.Bytes(data), storage.SetOptions{})
}

// bodies returns how many bodies came and went, and the number of copies.
func bodies(stores []*insider) (moved, copied int) {
	for _, i := range stores {
		i.mu.Lock()
		moved, copied = moved+i.read+i.sent, copied+i.copied
		i.read, i.sent, i.copied = 0, 0, 0
		i.mu.Unlock()
	}
	return moved, copied
}

// copyingMux is a mux over stores that copy inside themselves, or do not.
func copyingMux(t *testing.T, mode muxengine.Mode, keyspace muxengine.Keyspace, copies bool) (storage.Storage, []*insider) {
	t.Helper()
	cfg := muxengine.Config{Name: "mux", Mode: mode, Keyspace: keyspace}
	var stores []*insider
	shared := newInsider()
	for _, name := range []string{"a", "b"} {
		weight, one := 1, newInsider()
		if mode == muxengine.ModeRoundRobin || mode == muxengine.ModeWeighted {
			one = shared // as these modes presume
		}
		member := muxengine.Member{Name: name, Storage: one, Weight: &weight}
		if !copies {
			member.Storage = one.Storage
		}
		cfg.Members, stores = append(cfg.Members, member), append(stores, one)
	}
	mux, err := muxengine.New(cfg, muxengine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mux.Close)
	if stores[0] == stores[1] {
		stores = stores[:1]
	}
	return mux, stores
}

var copyModes = []struct {
	mode     muxengine.Mode
	keyspace muxengine.Keyspace
}{
	{muxengine.ModeFailover, ""}, {muxengine.ModeFailover, muxengine.KeyspaceSpread}, {muxengine.ModeRoundRobin, ""}, {muxengine.ModeWeighted, ""},
	{muxengine.ModeStickyByKey, ""}, {muxengine.ModeStickyByKey, muxengine.KeyspaceSpread}, {muxengine.ModeShield, ""},
	{muxengine.ModeMirror, ""}, {muxengine.ModeMirror, muxengine.KeyspaceSpread},
}

// TestCopyInsideAMemberIsTheSameAsOneThatIsSent makes each copy through muxes whose
// members can copy and through ones whose members cannot.
func TestCopyInsideAMemberIsTheSameAsOneThatIsSent(t *testing.T) {
	type result struct {
		status              int
		code, etag, content string
		headers, tags       map[string]string
		partStatus          int
		partOfTheContent    string
	}
	cases := map[string][]string{
		"plain":                   nil,
		"other metadata":          {"X-Amz-Metadata-Directive", "REPLACE", "Content-Type", "c/d", "X-Amz-Meta-New", "1"},
		"other tags":              {"X-Amz-Tagging-Directive", "REPLACE", "X-Amz-Tagging", "new=1"},
		"no tags":                 {"X-Amz-Tagging-Directive", "REPLACE"},
		"if it matches":           {"X-Amz-Copy-Source-If-Match", "ETAG"},
		"if it does not match":    {"X-Amz-Copy-Source-If-Match", `"other"`},
		"unless it matches":       {"X-Amz-Copy-Source-If-None-Match", "ETAG"},
		"unless it does not":      {"X-Amz-Copy-Source-If-None-Match", `"other"`},
		"if it was changed since": {"X-Amz-Copy-Source-If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"},
		"if it was not":           {"X-Amz-Copy-Source-If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"},
	}
	sent := map[string]bool{ // what is not copied inside though it could be
		"if nothing is there": true, "if something is there": true, "onto itself": true,
	}
	conditional := map[string][]string{
		"if nothing is there":   {"If-None-Match", "*"},
		"if something is there": {"If-Match", "*"},
		"onto itself":           {"X-Amz-Metadata-Directive", "REPLACE", "Content-Type", "c/d"},
	}
	refused := map[string]bool{
		"if it does not match": true, "unless it matches": true, "if it was changed since": true, "if it was not": true, "if something is there": true,
	}
	run := func(t *testing.T, name string, headers []string, mux storage.Storage, stores []*insider) (result, int, int) {
		f := newFront(t, mux)
		data := content(3 * smallBytes)
		a := f.want(200, http.MethodPut, path("from"), data, "Content-Type", "a/b", "Cache-Control", "no-store", "X-Amz-Meta-Color", "blue",
			"X-Amz-Tagging", "t=1", "X-Amz-Sdk-Checksum-Algorithm", "SHA256")
		key := "to"
		if name == "onto itself" {
			key = "from"
		}
		list := append([]string{"X-Amz-Copy-Source", "assets/from"}, headers...)
		for i := range list {
			if list[i] == "ETAG" {
				list[i] = a.Header.Get("ETag")
			}
		}
		before, err := mux.Stat(t.Context(), "from", storage.StatOptions{})
		if err != nil {
			t.Fatal(err)
		}
		bodies(stores)
		a = f.do(http.MethodPut, path(key), nil, list...)
		moved, copied := bodies(stores)
		var answer struct{ ETag string }
		_ = xml.Unmarshal(a.body, &answer)
		r := result{status: a.StatusCode, code: a.code(), etag: answer.ETag}
		if a.StatusCode != http.StatusOK {
			return r, moved, copied
		}
		got := f.want(200, http.MethodGet, path(key), nil, "X-Amz-Checksum-Mode", "ENABLED")
		r.content = string(got.body)
		if got.Header.Get("ETag") != answer.ETag {
			t.Errorf("%s: the copy was told to have the tag %s and has %s", name, answer.ETag, got.Header.Get("ETag"))
		}
		r.headers = map[string]string{}
		for name, values := range got.Header {
			if !slices.Contains([]string{"Date", "Last-Modified", "X-Amz-Request-Id", "X-Storagemux-Backend", "Etag"}, name) {
				r.headers[name] = strings.Join(values, ",")
			}
		}
		if r.tags, err = storage.GetTags(t.Context(), mux, key); err != nil {
			t.Error(err)
		}
		after, err := mux.Stat(t.Context(), key, storage.StatOptions{})
		if err != nil || after.Version == "" || after.Version == before.Version {
			t.Errorf("%s: the copy has the version %q of a source with %q, %v", name, after.Version, before.Version, err)
		}
		upload := f.createUpload("parts")
		part := f.do(http.MethodPut, path("parts")+"?partNumber=1&uploadId="+url.QueryEscape(upload), nil,
			append(list, "X-Amz-Copy-Source-Range", "bytes=10-1009")...)
		_ = xml.Unmarshal(part.body, &answer)
		r.partStatus = part.StatusCode
		if part.StatusCode == http.StatusOK {
			f.want(200, http.MethodPost, path("parts")+"?uploadId="+url.QueryEscape(upload), completeXML(answer.ETag))
			r.partOfTheContent = string(f.stored("parts"))
		}
		return r, moved, copied
	}
	all := maps.Clone(cases)
	maps.Copy(all, conditional)
	for _, m := range copyModes {
		t.Run(string(m.mode)+" "+string(m.keyspace), func(t *testing.T) {
			for name, headers := range all {
				if m.keyspace == muxengine.KeyspaceSpread && strings.HasPrefix(name, "if ") && conditional[name] != nil {
					continue // refused before anything is done
				}
				inside, stores := copyingMux(t, m.mode, m.keyspace, true)
				got, moved, copied := run(t, name, headers, inside, stores)
				plain, _ := copyingMux(t, m.mode, m.keyspace, false)
				want, _, _ := run(t, name, headers, plain, nil)
				if !maps.Equal(got.headers, want.headers) || !maps.Equal(got.tags, want.tags) {
					t.Errorf("%s: headers %q and tags %q, want %q and %q", name, got.headers, got.tags, want.headers, want.tags)
				}
				got.headers, want.headers, got.tags, want.tags = nil, nil, nil, nil
				if got.status != want.status || got.code != want.code || got.etag != want.etag || got.content != want.content ||
					got.partStatus != want.partStatus || got.partOfTheContent != want.partOfTheContent {
					t.Errorf("%s: %d %s %s, want %d %s %s; contents equal: %t, parts: %d, %d, %t", name, got.status, got.code, got.etag,
						want.status, want.code, want.etag, got.content == want.content, got.partStatus, want.partStatus, got.partOfTheContent == want.partOfTheContent)
				}
				// With sticky-by-key the two keys are at home on different members.
				if m.mode != muxengine.ModeStickyByKey && !sent[name] && !refused[name] && (moved != 0 || copied == 0) {
					t.Errorf("%s: %d bodies were moved for %d copies", name, moved, copied)
				}
				// Of several members the others follow the one that decides.
				if sent[name] && copied != 0 && (name == "onto itself" || m.mode != muxengine.ModeShield && m.mode != muxengine.ModeMirror) {
					t.Errorf("%s: copied inside", name)
				}
			}
		})
	}
}

func TestCopyOfASourceThatIsOverwrittenMeanwhileIsOfOneVersion(t *testing.T) {
	oldData, newData := content(2*smallBytes), content(2*smallBytes+1)
	overwrite := func(t *testing.T, mux storage.Storage) func() {
		return func() {
			if _, err := storage.Set(t.Context(), mux, "from", newData, storage.SetOptions{Metadata: map[string]string{"v": "new"}}); err != nil {
				t.Error(err)
			}
		}
	}
	for _, m := range copyModes {
		for name, copies := range map[string]bool{"inside": true, "sent": false} {
			t.Run(string(m.mode)+" "+string(m.keyspace)+" "+name, func(t *testing.T) {
				mux, stores := copyingMux(t, m.mode, m.keyspace, true)
				f := newFront(t, mux)
				f.want(200, http.MethodPut, path("from"), oldData, "X-Amz-Meta-V", "old")
				hook := overwrite(t, mux)
				var once sync.Once
				for _, one := range stores {
					if copies {
						one.beforeCopy = func() { once.Do(hook) }
					} else {
						one.refuses, one.onceGet = true, func() { once.Do(hook) }
					}
				}
				f.want(200, http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", "assets/from")
				got := f.want(200, http.MethodGet, path("to"), nil)
				want := map[string][]byte{"old": oldData, "new": newData}[got.Header.Get("X-Amz-Meta-V")]
				if want == nil || !bytes.Equal(got.body, want) {
					t.Errorf("the copy has the metadata of %q and %d bytes", got.Header.Get("X-Amz-Meta-V"), len(got.body))
				}
				a := f.do(http.MethodPut, path("to"), nil, "X-Amz-Copy-Source", "assets/from", "X-Amz-Copy-Source-If-Match", `"another"`)
				if a.StatusCode != http.StatusPreconditionFailed {
					t.Errorf("a copy under a condition that does not hold: %d", a.StatusCode)
				}
			})
		}
	}
}

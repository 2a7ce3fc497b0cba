package fallbackuri

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/muxengine"
	"github.com/suaveplan/storagemux/internal/storage"
)

func TestMuxIsACandidateAndALadderIsAMember(t *testing.T) {
	r := newRig(t, Policy{})
	mux := func(mode muxengine.Mode, members ...muxengine.Member) *muxengine.Mux {
		m, err := muxengine.New(muxengine.Config{Name: "mux", Mode: mode, Members: members}, muxengine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		return m
	}
	r.stores["mux"] = mux(muxengine.ModeMirror, muxengine.Member{Name: "a", Storage: r.a}, muxengine.Member{Name: "b", Storage: r.b})
	ladder, err := NewStorage(ladderOf("memory://mux", "memory://c"), Options{Resolver: r.stores})
	if err != nil {
		t.Fatal(err)
	}
	defer ladder.Close()
	spare := newFake()
	top := mux(muxengine.ModeFailover, muxengine.Member{Name: "ladder", Storage: ladder}, muxengine.Member{Name: "spare", Storage: spare})
	if _, err := storage.Set(t.Context(), top, "k", []byte("x"), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	r.wantContents("x", "x", "x")
	for _, f := range []*fake{r.a, r.b} {
		f.fail(unavailable())
	}
	data, info, err := storage.Get(t.Context(), top, "k")
	if err != nil || string(data) != "x" || info.ServedBy != "ladder" || info.Version == "" || len(info.Metadata) != 0 {
		t.Fatalf("got %q, %+v, %v", data, info, err)
	}
	// A key that one candidate does not hold and another cannot say is no
	// reason to give up the ladder.
	if _, _, err := storage.Get(t.Context(), top, "other"); storage.CodeOf(err) != storage.CodeKeyNotFound || spare.count("get") != 1 {
		t.Fatalf("got %v", err)
	}
	if m := top.Stats().Members[0]; m.State != muxengine.StateUp {
		t.Fatalf("got %+v", m)
	}
	r.c.fail(unavailable())
	if _, _, err := storage.Get(t.Context(), top, "k"); storage.CodeOf(err) != storage.CodeKeyNotFound {
		t.Fatalf("the spare was not asked: %v", err)
	}
	if m := top.Stats().Members[0]; m.State != muxengine.StateDown {
		t.Fatalf("got %+v", m)
	}
}

func TestLadderIsWellWhileOneCandidateIs(t *testing.T) {
	r := newRig(t, Policy{})
	ladder, err := NewStorage(ladderOf("memory://a", nested(1, "memory://b", "memory://c")), Options{Resolver: r.stores})
	if err != nil {
		t.Fatal(err)
	}
	defer ladder.Close()
	for _, f := range []*fake{r.a, r.b} {
		if err := ladder.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.fail(unavailable())
	}
	if _, err := ladder.Stat(t.Context(), storage.ProbeKey, storage.StatOptions{}); storage.CodeOf(err) != storage.CodeKeyNotFound {
		t.Fatalf("got %v", err)
	}
	r.c.fail(refusal(storage.CodeAccessDenied))
	if f := wantFailure(t, ladder.Check(t.Context()), storage.CodeFallbackAllCandidatesFailed); len(f.CandidateErrors) != 2 {
		t.Fatalf("got %+v", f)
	}
}

func TestReadThatBreaksGoesOnAtAnotherCandidateWithTheSameObject(t *testing.T) {
	r := newRig(t, Policy{})
	content := strings.Repeat("0123456789", 10_000)
	r.everywhere(content)
	r.stores["a"] = &breaking{r.a}
	obj, err := r.GetStream(t.Context(), abc, storage.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(obj.Body)
	if err != nil || string(data) != content {
		t.Fatalf("got %d bytes, %v", len(data), err)
	}
	if err := obj.Body.Close(); err != nil {
		t.Fatal(err)
	}
}

// breaking is a store whose bodies break after 1000 bytes.
type breaking struct{ storage.Storage }

func (b *breaking) GetStream(ctx context.Context, key string, opts storage.GetOptions) (*storage.Object, error) {
	obj, err := b.Storage.GetStream(ctx, key, opts)
	if err == nil {
		obj.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(obj.Body, 1000), &cut{err: io.ErrUnexpectedEOF}), obj.Body}
	}
	return obj, err
}

// sources returns the packages' files by name, with or without tests.
func sources(t *testing.T, tests bool) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"*.go", "uri/*.go", "fallbacktest/*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") != tests {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[path] = string(text)
		}
	}
	if len(files) < 3 {
		t.Fatalf("only %d files were found", len(files))
	}
	return files
}

func TestFilesKeepToOneConcernEach(t *testing.T) {
	for limit, tests := range map[int]bool{300: false, 500: true} {
		for path, text := range sources(t, tests) {
			if lines := strings.Count(text, "\n"); lines > limit {
				t.Errorf("%s has %d lines, more than %d", path, lines, limit)
			}
		}
	}
}

func TestPackageHasNoExecutorRetryOrOperatingSystemOfItsOwn(t *testing.T) {
	imports := regexp.MustCompile(`"(os|syscall|runtime|unsafe|net|net/http/httptest|k8s\.io/[^"]*|sigs\.k8s\.io/[^"]*|[^"]*failsafe[^"]*)"`)
	waits := regexp.MustCompile(`time\.(Sleep|After|NewTimer|NewTicker|Tick)\(`)
	for path, text := range sources(t, false) {
		if found := imports.FindString(text); found != "" {
			t.Errorf("%s imports %s", path, found)
		}
		if found := waits.FindString(text); found != "" {
			t.Errorf("%s waits by %s", path, found)
		}
	}
}

package proxy

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/fallbackuri/fallbacktest"
	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
)

// withLadder is a mux over the backend ladder, whose candidates are a under a
// base, the mux pair of b and c, and, in a fallback URI of its own, d.
func withLadder(revision int64, change func(*muxconfig.Fallback, *muxconfig.Mux)) *muxconfig.Document {
	d := testDocument(revision, "a", "b", "c", "d")
	top := &d.Muxes[0]
	pair, rungs := *top, *top
	pair.Name, pair.UID, pair.Mode = "pair", "mux-2", muxconfig.ModeMirror
	pair.Members = []muxconfig.Member{{Name: "b", Backend: "b"}, {Name: "c", Backend: "c"}}
	rungs.Name, rungs.UID, rungs.Mode = muxconfig.LadderName("ladder"), "uid-ladder", muxconfig.ModeFallback
	rungs.Members = []muxconfig.Member{
		{Name: "backend.a", Backend: "a"}, {Name: "mux.pair", Mux: "pair"}, {Name: "backend.d", Backend: "d"},
	}
	top.Members = []muxconfig.Member{{Name: "rungs", Backend: "ladder"}}
	inner, _ := uri.Build([]string{"backend://d"}, 0)
	outer, _ := uri.Build([]string{"backend://a/base", "mux://pair", inner.String()}, 0)
	fallback := &muxconfig.Fallback{
		URI: outer.String(), Walk: "sequential", ErrorClass: "transient", WriteMode: "all", DeleteMode: "all", ListFailureMode: "throw",
		MaxCandidates: 16, MaxDepth: 4,
		Candidates: []muxconfig.Candidate{
			{URI: "backend://a/base", Member: "backend.a"}, {URI: "mux://pair", Member: "mux.pair"}, {URI: "backend://d", Member: "backend.d"},
		},
	}
	if change != nil {
		change(fallback, &rungs)
	}
	d.Backends = append(d.Backends, muxconfig.Backend{Name: "ladder", UID: "uid-ladder", MaxInFlight: 16, Fallback: fallback})
	d.Muxes = []muxconfig.Mux{*top, rungs, pair}
	return d
}

func (s *served) memory(name string) storage.Storage { return s.stores["uid-"+name].Storage }

func has(t *testing.T, s storage.Storage, key string) bool {
	t.Helper()
	found, err := storage.Has(t.Context(), s, key)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLadderOfADocumentWritesToItsCandidatesAndReportsOnEach(t *testing.T) {
	s := newServer(t, nil)
	mustTake(t, s, withLadder(1, nil))
	now := s.applier.served.Load()
	if _, err := storage.Set(t.Context(), now.mux, "k", []byte("x"), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{"a": "base/k", "b": "k", "c": "k", "d": "k"} {
		if !has(t, now.memory(name), key) {
			t.Errorf("%s does not hold %s", name, key)
		}
	}
	if err := now.memory("a").Delete(t.Context(), "base/k"); err != nil {
		t.Fatal(err)
	}
	data, info, err := storage.Get(t.Context(), now.mux, "k")
	if err != nil || string(data) != "x" || info.ServedBy != "rungs" {
		t.Fatalf("got %q, %+v, %v", data, info, err)
	}
	paths := map[string]muxconfig.MemberReport{}
	for _, m := range s.facts().report().Members {
		paths[m.Path] = m
	}
	for path, hits := range map[string]int64{"rungs": 2, "rungs/backend.a": 1, "rungs/mux.pair": 2, "rungs/backend.d": 1} {
		m, ok := paths[path]
		if !ok || m.State != muxconfig.StateUp || m.Figures.Hits != hits || len(m.Capabilities) == 0 {
			t.Errorf("%s: got %+v, %v", path, m, ok)
		}
	}
	if m := paths["rungs/backend.a"]; m.Backend != "a" || m.UID != "uid-a" || m.Figures.Misses != 1 {
		t.Errorf("got %+v", m)
	}
	if _, ok := paths["rungs/mux.pair/b"]; !ok {
		t.Errorf("what is in a mux that is a candidate is missing: %v", paths)
	}
}

func TestCandidateThatDrainsIsNotChosenAndItsDrainIsReported(t *testing.T) {
	s := newServer(t, nil)
	first := withLadder(1, nil)
	mustTake(t, s, first)
	now := s.applier.served.Load()
	old := strings.Repeat("old", 1<<16)
	if _, err := storage.Set(t.Context(), now.mux, "k", []byte(old), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	reading, err := now.mux.GetStream(t.Context(), "k", storage.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Hour)
	mustTake(t, s, withLadder(2, func(_ *muxconfig.Fallback, m *muxconfig.Mux) {
		m.Members[0].Drain = &muxconfig.Drain{Phase: muxconfig.DrainGranted, Deadline: &deadline}
	}))
	now = s.applier.served.Load()
	draining := func() *muxconfig.DrainReport {
		s.drains.look(t.Context())
		for _, m := range s.facts().report().Members {
			if m.Path == "rungs/backend.a" {
				return m.Drain
			}
		}
		t.Fatal("the candidate is not reported")
		return nil
	}
	if d := draining(); d == nil || d.Done || d.InFlight != 1 {
		t.Fatalf("a body is being read, and the report says %+v", d)
	}
	if _, err := storage.Set(t.Context(), now.mux, "new", []byte("x"), storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	if has(t, now.memory("a"), "base/new") || !has(t, now.memory("b"), "new") {
		t.Fatal("the write went to the one that drains")
	}
	if data, err := io.ReadAll(reading.Body); err != nil || string(data) != old {
		t.Fatalf("the body that was being read broke after %d bytes: %v", len(data), err)
	}
	_ = reading.Body.Close()
	for deadline := time.Now().Add(10 * time.Second); !draining().Done; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the drain does not end: %+v", draining())
		}
	}
	gone := withLadder(3, func(_ *muxconfig.Fallback, m *muxconfig.Mux) { m.Members = m.Members[1:] })
	gone.Backends = gone.Backends[1:]
	mustTake(t, s, gone)
	now = s.applier.served.Load()
	if data, _, err := storage.Get(t.Context(), now.mux, "new"); err != nil || string(data) != "x" {
		t.Fatalf("got %q, %v", data, err)
	}
}

func TestCandidatesKeepTheirFiguresWhileTheLadderChanges(t *testing.T) {
	s := newServer(t, nil)
	mustTake(t, s, withLadder(1, nil))
	before := s.applier.served.Load()
	if _, err := storage.Set(t.Context(), before.mux, "k", nil, storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	mustTake(t, s, withLadder(2, func(f *muxconfig.Fallback, _ *muxconfig.Mux) { f.WriteMode = "first-success" }))
	now := s.applier.served.Load()
	if now.ladders["uid-ladder"].Storage == before.ladders["uid-ladder"].Storage {
		t.Fatal("another policy, and the same ladder")
	}
	if _, err := storage.Set(t.Context(), now.mux, "k", nil, storage.SetOptions{}); err != nil {
		t.Fatal(err)
	}
	var hits []int64
	for _, m := range s.facts().report().Members {
		if strings.HasPrefix(m.Path, "rungs/backend.") {
			hits = append(hits, m.Figures.Hits)
		}
	}
	if !slices.Equal(hits, []int64{2, 1}) {
		t.Fatalf("got %v", hits)
	}
	same := withLadder(3, func(f *muxconfig.Fallback, _ *muxconfig.Mux) { f.WriteMode = "first-success" })
	same.Frontend.Bucket = "other"
	mustTake(t, s, same)
	if again := s.applier.served.Load(); again.ladders["uid-ladder"].Storage != now.ladders["uid-ladder"].Storage {
		t.Fatal("nothing of the ladder changed, and it was made anew")
	}
}

func TestLadderOfADocumentIsNotAskedAgainInPlaceNorCutShort(t *testing.T) {
	faulty := &fallbacktest.Faulty{Storage: memory.New(0)}
	faulty.Fail(errors.New("down"))
	s := newServer(t, func(o *Options) {
		o.open = func(b *muxconfig.Backend) (storage.Storage, error) {
			if b.Name == "d" {
				return faulty, nil
			}
			return maker{}.open(b)
		}
	})
	d := withLadder(1, nil)
	d.Muxes[0].Retry = muxconfig.Retry{MaxAttempts: 3}
	mustTake(t, s, d)
	now := s.applier.served.Load()
	_, err := storage.Set(t.Context(), now.mux, "k", nil, storage.SetOptions{})
	if storage.CodeOf(err) != storage.CodeFallbackWriteMirrorFailed {
		t.Fatalf("got %v", err)
	}
	for _, m := range s.facts().report().Members {
		if m.Path == "rungs/backend.d" && m.Figures.Errors != 1 {
			t.Fatalf("the candidate was asked %d times", m.Figures.Errors)
		}
	}
	// a, b and c one after the other in the mux, d: each has 5 s.
	if got := now.ladders["uid-ladder"].timeout; got < 20*time.Second {
		t.Fatalf("the whole ladder has %s", got)
	}
}

func TestDocumentedLadderPassesTheAcceptanceOfLadders(t *testing.T) {
	fallbacktest.Run(t, func(t *testing.T, candidates []storage.Storage) storage.Storage {
		s := newServer(t, func(o *Options) {
			o.open = func(b *muxconfig.Backend) (storage.Storage, error) {
				return candidates[strings.Index("abc", b.Name)], nil
			}
		})
		d := testDocument(1, "a", "b", "c")
		rungs := d.Muxes[0]
		rungs.Name, rungs.UID, rungs.Mode = muxconfig.LadderName("ladder"), "uid-ladder", muxconfig.ModeFallback
		f := &muxconfig.Fallback{
			Walk: "sequential", ErrorClass: "transient", WriteMode: "all", DeleteMode: "any", ListFailureMode: "throw", MaxCandidates: 16, MaxDepth: 4,
		}
		var texts []string
		for _, m := range rungs.Members {
			texts = append(texts, "backend://"+m.Name)
			f.Candidates = append(f.Candidates, muxconfig.Candidate{URI: "backend://" + m.Name, Member: m.Name})
		}
		u, _ := uri.Build(texts, 0)
		f.URI = u.String()
		d.Muxes[0].Members = []muxconfig.Member{{Name: "ladder", Backend: "ladder"}}
		d.Muxes = append(d.Muxes, rungs)
		d.Backends = append(d.Backends, muxconfig.Backend{Name: "ladder", UID: "uid-ladder", MaxInFlight: 16, Fallback: f})
		mustTake(t, s, d)
		return s.applier.served.Load().ladders["uid-ladder"]
	}, fallbacktest.Options{})
}

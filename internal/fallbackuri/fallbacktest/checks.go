package fallbacktest

import (
	"context"
	"errors"
	"slices"

	"github.com/suaveplan/storagemux/internal/storage"
)

func firstAnswers(s *suite) {
	for i, data := range []string{"first", "second", "third"} {
		if s.Options.Parallel {
			data = "same"
		}
		s.put(i, "k", data)
	}
	if s.Options.Parallel {
		s.wantGet("k", "same")
	} else {
		s.wantGet("k", "first")
	}
}

func missingFallsThrough(s *suite) {
	s.put(2, "k", "third")
	s.wantGet("k", "third")
	found, err := storage.Has(s.Context(), s.store, "k")
	if !found || err != nil {
		s.Errorf("got %v, %v", found, err)
	}
}

func failureFallsThrough(s *suite) {
	s.put(1, "k", "second")
	s.candidates[0].Fail(errDown)
	s.wantGet("k", "second")
	s.candidates[0].Fail(errors.New("an error of no kind"))
	s.wantGet("k", "second")
}

func nobodyHolds(s *suite) {
	s.wantCode(s.get("k"), storage.CodeKeyNotFound)
}

func outageIsNotMissing(s *suite) {
	for i := range s.candidates {
		s.candidates[i].Fail(errDown)
		err := s.get("k")
		s.wantCode(err, storage.CodeFallbackAllCandidatesFailed)
		if found, err := storage.Has(s.Context(), s.store, "k"); err == nil {
			s.Errorf("an outage says %v", found)
		}
		if storage.Classify(err) != storage.ClassTransient {
			s.Errorf("got %v, want a transient error", err)
		}
		s.candidates[i].Fail(nil)
	}
}

func refusalAnswers(s *suite) {
	for _, c := range s.candidates {
		c.Fail(storage.Errorf(storage.CodeAccessDenied, "", "no"))
	}
	s.wantCode(s.get("k"), storage.CodeAccessDenied)
	if !s.Options.Parallel {
		s.candidates[1].Fail(nil)
		s.put(1, "k", "second")
		s.wantCode(s.get("k"), storage.CodeAccessDenied)
	}
}

func writeGoes(s *suite) {
	s.wantCode(s.set("k"), "")
	if s.FirstSuccess {
		s.wantHolders("k", 0)
	} else {
		s.wantHolders("k", 0, 1, 2)
	}
	s.wantGet("k", "new")
}

func writeMisses(s *suite) {
	s.candidates[0].Fail(errDown)
	err := s.set("k")
	s.candidates[0].Fail(nil)
	if s.FirstSuccess {
		s.wantCode(err, "")
		s.wantHolders("k", 1)
		return
	}
	s.wantCode(err, storage.CodeFallbackWriteMirrorFailed)
	s.wantHolders("k", 1, 2)
}

func writeFails(s *suite) {
	for _, c := range s.candidates {
		c.Fail(errDown)
	}
	if s.FirstSuccess {
		s.wantCode(s.set("k"), storage.CodeFallbackAllCandidatesFailed)
	} else {
		s.wantCode(s.set("k"), storage.CodeFallbackWriteMirrorFailed)
	}
}

func deleteGoes(s *suite) {
	for i := range s.candidates {
		s.put(i, "k", "x")
	}
	s.wantCode(s.store.Delete(s.Context(), "k"), "")
	s.wantHolders("k")
}

func deleteMisses(s *suite) {
	for i := range s.candidates {
		s.put(i, "k", "x")
	}
	s.candidates[1].Fail(errDown)
	err := s.store.Delete(s.Context(), "k")
	s.candidates[1].Fail(nil)
	if s.DeleteAll {
		s.wantCode(err, storage.CodeFallbackWriteMirrorFailed)
	} else {
		s.wantCode(err, "")
	}
	s.wantHolders("k", 1)
}

func (s *suite) list() ([]string, error) {
	page, err := s.store.List(s.Context(), storage.ListOptions{})
	var keys []string
	for _, o := range page.Objects {
		keys = append(keys, o.Key)
	}
	return keys, err
}

func listUnion(s *suite) {
	s.put(0, "b", "of the first")
	s.put(1, "b", "x")
	s.put(2, "a", "x")
	if keys, err := s.list(); err != nil || !slices.Equal(keys, []string{"a", "b"}) {
		s.Errorf("got %q, %v", keys, err)
	}
}

func listLacks(s *suite) {
	s.put(0, "a", "x")
	s.put(2, "c", "x")
	s.candidates[0].Fail(errDown)
	keys, err := s.list()
	if !s.ListPartial {
		s.wantCode(err, storage.CodeFallbackListUnionFailed)
	} else if err != nil || !slices.Equal(keys, []string{"c"}) {
		s.Errorf("got %q, %v", keys, err)
	}
	for _, c := range s.candidates {
		c.Fail(errDown)
	}
	_, err = s.list()
	s.wantCode(err, storage.CodeFallbackListUnionFailed)
}

func callerLeft(s *suite) {
	s.put(0, "k", "x")
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, _, get := storage.Get(ctx, s.store, "k")
	_, set := storage.Set(ctx, s.store, "k", nil, storage.SetOptions{})
	_, list := s.store.List(ctx, storage.ListOptions{})
	for _, err := range []error{get, set, list, s.store.Delete(ctx, "k")} {
		s.wantCode(err, storage.CodeFallbackAborted)
		if storage.Classify(err) != storage.ClassAbort {
			s.Errorf("got %v, want an abort", err)
		}
	}
	s.wantGet("k", "x")
}

package seal

import (
	"bytes"
	"testing"
)

func newSealer(t *testing.T, current, previous string) *Sealer {
	t.Helper()
	s, err := New(current, previous)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatOneReplicaSealsAnotherOpensAcrossOneChangeOfKeys(t *testing.T) {
	first, second, third := NewKey(), NewKey(), NewKey()
	sealed := newSealer(t, first, "").Seal("list", []byte("after/me"))
	for name, s := range map[string]*Sealer{"same key": newSealer(t, first, ""), "next key": newSealer(t, second, first)} {
		if plain, err := s.Open("list", sealed); err != nil || string(plain) != "after/me" {
			t.Errorf("%s: Open gave %q, %v", name, plain, err)
		}
	}
	if _, err := newSealer(t, third, second).Open("list", sealed); err == nil {
		t.Error("a key that was replaced twice still opens")
	}
}

func TestOpenRefusesChangesAndOtherPurposes(t *testing.T) {
	s := newSealer(t, NewKey(), "")
	sealed := s.Seal("list", []byte("after/me"))
	if _, err := s.Open("upload", sealed); err == nil {
		t.Error("a list token opened as an upload id")
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		if _, err := s.Open("list", changed); err == nil {
			t.Fatalf("a value with byte %d changed opened", i)
		}
		if _, err := s.Open("list", sealed[:i]); err == nil {
			t.Fatalf("a value cut to %d bytes opened", i)
		}
	}
}

func TestNewRefusesKeysThatAreNone(t *testing.T) {
	for _, key := range []string{"", "short", "c2hvcnQ="} {
		if _, err := New(key, ""); err == nil {
			t.Errorf("New took %q", key)
		}
	}
	if _, err := New(NewKey(), "c2hvcnQ="); err == nil {
		t.Error("New took a short previous key")
	}
}

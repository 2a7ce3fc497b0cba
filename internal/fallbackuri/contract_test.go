package fallbackuri

import (
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/fallbackuri/fallbacktest"
	"github.com/suaveplan/storagemux/internal/fallbackuri/uri"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
)

// closing makes the suite close the ladder.
type closing struct{ *Ladder }

func (c closing) Close() error { c.Ladder.Close(); return nil }

// stores resolves memory://NAME/BASE to a store of that name.
type stores map[string]storage.Storage

func (s stores) Resolve(candidate string) (Target, error) {
	at, err := uri.Locate(candidate)
	if err != nil {
		return Target{}, grammarError("Resolve", err)
	}
	store := s[at.Name]
	if store == nil {
		return Target{}, storage.Errorf(storage.CodeFallbackInvalidURI, "Resolve", "the scheme %q is not known here", at.Scheme)
	}
	return Target{Storage: store, Key: at.Key}, nil
}

func ladderOf(candidates ...string) string {
	u, err := uri.Build(candidates, uri.MaxCandidates)
	if err != nil {
		panic(err)
	}
	return u.String()
}

func TestLadderOfBasesKeepsTheContractOfAStore(t *testing.T) {
	for name, tc := range map[string]struct {
		policy     Policy
		candidates []string
		base       int
	}{
		"writes to all":             {Policy{}, []string{"memory://a", "memory://b/deep/er", "memory://c/x/"}, len("deep/er/")},
		"writes to the first":       {Policy{WriteMode: WriteFirstSuccess}, []string{"memory://a/base", "memory://b"}, len("base/")},
		"reads from all at once":    {Policy{Walk: WalkParallel, DeleteMode: DeleteAll}, []string{"memory://a", "memory://b/base/"}, len("base/")},
		"any error leads on":        {Policy{ErrorClass: ErrorClassAny}, []string{"memory://a", "memory://b"}, 0},
		"a single candidate":        {Policy{}, []string{"memory://a/base"}, len("base/")},
		"a ladder within a ladder":  {Policy{}, []string{"memory://a", ladderOf("memory://b/x", "memory://c")}, len("x/")},
		"a missing key is final":    {Policy{NotFoundIsFinal: true}, []string{"memory://a", "memory://b"}, 0},
		"lists that may be partial": {Policy{ListFailureMode: ListPartial}, []string{"memory://a", "memory://b"}, 0},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			storagetest.Run(t, func(t *testing.T) storage.Storage {
				l, err := NewStorage(ladderOf(tc.candidates...), Options{
					Policy: tc.policy, Resolver: stores{"a": memory.New(0), "b": memory.New(0), "c": memory.New(0)},
				})
				if err != nil {
					t.Fatal(err)
				}
				return closing{l}
			}, storagetest.Options{MaxBody: 1 << 20, ListKeys: 1100, Keys: func(key string) storagetest.KeyFate {
				// The longest base leaves that much less for keys.
				if len(key) > storage.MaxKeyBytes-tc.base {
					return storagetest.RefusedKey
				}
				return storagetest.Held
			}})
		})
	}
}

func TestLadderPassesItsOwnAcceptance(t *testing.T) {
	for name, tc := range map[string]struct {
		policy Policy
		opts   fallbacktest.Options
	}{
		"the defaults":           {Policy{}, fallbacktest.Options{}},
		"parallel":               {Policy{Walk: WalkParallel}, fallbacktest.Options{Parallel: true}},
		"first success":          {Policy{WriteMode: WriteFirstSuccess}, fallbacktest.Options{FirstSuccess: true}},
		"strict deletes":         {Policy{DeleteMode: DeleteAll}, fallbacktest.Options{DeleteAll: true}},
		"lists that may be less": {Policy{ListFailureMode: ListPartial}, fallbacktest.Options{ListPartial: true}},
	} {
		t.Run(name, func(t *testing.T) {
			fallbacktest.Run(t, func(t *testing.T, candidates []storage.Storage) storage.Storage {
				l, err := NewStorage(ladderOf("memory://a", "memory://b", "memory://c"), Options{
					Policy: tc.policy, Resolver: stores{"a": candidates[0], "b": candidates[1], "c": candidates[2]},
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(l.Close)
				return l
			}, tc.opts)
		})
	}
}

package muxengine

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/suaveplan/storagemux/internal/storage"
)

// TestAWriteIsWhereItsModePromises holds the table of docs/guarantees.md: where
// an object is after a write was taken, who can read it, and what goes on while
// a member is down.
func TestAWriteIsWhereItsModePromises(t *testing.T) {
	const one, all = 1, 3
	for _, test := range []struct {
		name    string
		options []option
		// stored is on how many of three members a write is, and first whether
		// the first listed one that is up must be among them.
		stored int
		first  bool
		// found: what was written can be read through the mux, whoever is asked.
		found, spread bool
		// originWrites: without the first member no write is taken.
		originWrites bool
	}{
		{name: "failover, replicated", options: []option{inMode(ModeFailover)}, stored: one, first: true, found: true},
		{name: "failover, spread", options: []option{inMode(ModeFailover), spread}, stored: one, first: true, found: true, spread: true},
		{name: "round-robin, replicated", options: []option{inMode(ModeRoundRobin)}, stored: one},
		{name: "weighted, replicated", options: []option{inMode(ModeWeighted), withWeights(2, 1, 1), seeded(1)}, stored: one},
		{name: "sticky-by-key, replicated", options: []option{inMode(ModeStickyByKey)}, stored: one, found: true},
		{name: "sticky-by-key, spread", options: []option{inMode(ModeStickyByKey), spread}, stored: one, found: true, spread: true},
		{name: "shield, replicated", options: []option{inMode(ModeShield)}, stored: all, first: true, found: true, originWrites: true},
		{name: "shield, spread", options: []option{inMode(ModeShield), spread}, stored: all, first: true, found: true, spread: true, originWrites: true},
		{name: "mirror, replicated", options: []option{inMode(ModeMirror)}, stored: all, first: true, found: true},
		{name: "mirror, spread", options: []option{inMode(ModeMirror), spread}, stored: all, first: true, found: true, spread: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 3, test.options...)
				r.mustPut("k", "written")
				synctest.Wait()
				holders := r.holding("k")
				if len(holders) != test.stored || test.first && holders[0] != 0 {
					t.Fatalf("all up: the object is on %v", holders)
				}
				for range 6 {
					if test.found {
						r.mustGet("k", "written")
					}
				}

				victim := holders[0]
				others := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == victim })
				r.everywhere("replicated", "x")
				r.stores[others[1]].put("elsewhere", "x", nil)
				r.stores[victim].fail(unavailable())
				for range 6 { // in a race a member that fails may be too late to be noticed, and in a walk it has its turns
					_, _ = r.get("k")
					_ = r.put("missed", "x")
				}
				if state := r.member(r.stores[victim].name).State; state != StateDown {
					t.Fatalf("the member that fails is %s", state)
				}
				r.mustGet("replicated", "x")
				if test.spread {
					r.mustGet("elsewhere", "x")
					_, err := r.get("nowhere")
					wantCode(t, err, storage.CodeAllBackendsDown)
					wantCode(t, r.Delete(t.Context(), "elsewhere"), storage.CodeAllBackendsDown)
					_, err = r.List(t.Context(), storage.ListOptions{})
					wantCode(t, err, storage.CodeAllBackendsDown)
				}

				before := len(r.told(TopicFanoutPartial))
				err := r.put("new", "written meanwhile")
				synctest.Wait()
				holders = r.holding("new")
				if test.originWrites {
					wantCode(t, err, storage.CodeAllBackendsDown)
					if len(holders) != 0 {
						t.Fatalf("a write without the origin is on %v", holders)
					}
					return
				}
				if want := min(test.stored, len(others)); err != nil || len(holders) != want || slices.Contains(holders, victim) || test.first && holders[0] != others[0] {
					t.Fatalf("one down: %v, and the object is on %v", err, holders)
				}
				if test.stored == all {
					told := r.told(TopicFanoutPartial)[before:]
					if len(told) != 1 || !slices.Equal(told[0].Failed, []string{r.stores[victim].name}) {
						t.Fatalf("the write that a member missed is told as %+v", told)
					}
				}
			})
		})
	}
}

// holding returns the indexes of the stores that hold the key.
func (r *rig) holding(key string) []int {
	var list []int
	for i, f := range r.stores {
		if f.has(key) {
			list = append(list, i)
		}
	}
	return list
}

//go:build !race

package muxengine

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
)

// TestHotPathAllocations holds the figures that benchmarks show.
func TestHotPathAllocations(t *testing.T) {
	ctx := context.Background()
	get := func(cfg Config) float64 {
		m, err := New(cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		return testing.AllocsPerRun(200, func() {
			obj, err := m.GetStream(ctx, "k", storage.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			_ = obj.Body.Close()
			for _, b := range m.node.Load().members {
				for b.state.inFlight.Load() != 0 {
					runtime.Gosched() // a loser is on its way out
				}
			}
		})
	}
	one := get(Config{Mode: ModeFailover, Members: noops(2)})
	if one > 8 {
		t.Errorf("a get costs %v allocations, want at most 8", one)
	}
	nested := Config{Mode: ModeFailover, Members: noops(2)}
	two := get(Config{Mode: ModeFailover, Members: []Member{{Name: "inner", Mux: &nested}}})
	if two-one > 6 {
		t.Errorf("a level costs %v allocations, want at most 6", two-one)
	}
	race2, race3 := get(Config{Mode: ModeMirror, Members: noops(2)}), get(Config{Mode: ModeMirror, Members: noops(3)})
	if race3-race2 > 6 {
		t.Errorf("a raced member costs %v allocations, want at most 6", race3-race2)
	}
	t.Log(strings.TrimSpace(fmt.Sprintln("get", one, "level", two-one, "raced member", race3-race2)))
}

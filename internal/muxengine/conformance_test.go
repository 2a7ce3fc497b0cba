package muxengine

import (
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/memory"
	"github.com/suaveplan/storagemux/internal/storage/storagetest"
)

// closing makes the suite close the mux.
type closing struct{ *Mux }

func (c closing) Close() error { c.Mux.Close(); return nil }

func weightOf(w int) *int { return &w }

// threeHandles are three ways to one store, as round-robin and weighted presume.
func threeHandles() []Member {
	m := memory.New(0)
	return []Member{
		{Name: "a", Storage: m, Weight: weightOf(1)},
		{Name: "b", Storage: m.Handle(), Weight: weightOf(3)},
		{Name: "c", Storage: m.Handle(), Weight: weightOf(6)},
	}
}

func threeStores() []Member {
	return []Member{
		{Name: "a", Storage: memory.New(0)}, {Name: "b", Storage: memory.New(0)}, {Name: "c", Storage: memory.New(0)},
	}
}

func TestMuxKeepsTheContract(t *testing.T) {
	mirrorOf := func(members []Member) *Config { return &Config{Mode: ModeMirror, Members: members} }
	for name, cfg := range map[string]func() Config{
		"failover":    func() Config { return Config{Mode: ModeFailover, Members: threeStores()} },
		"round-robin": func() Config { return Config{Mode: ModeRoundRobin, Members: threeHandles()} },
		"weighted":    func() Config { return Config{Mode: ModeWeighted, Members: threeHandles()} },
		"sticky-by-key": func() Config {
			return Config{Mode: ModeStickyByKey, Keyspace: KeyspaceSpread, Members: threeStores()}
		},
		"shield": func() Config { return Config{Mode: ModeShield, Members: threeStores()} },
		"mirror": func() Config { return Config{Mode: ModeMirror, Members: threeStores()} },
		"failover spread": func() Config {
			return Config{Mode: ModeFailover, Keyspace: KeyspaceSpread, Members: threeStores()}
		},
		"failover of mirrors": func() Config {
			return Config{Mode: ModeFailover, Members: []Member{
				{Name: "left", Mux: mirrorOf(threeStores())}, {Name: "right", Mux: mirrorOf(threeStores())},
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			storagetest.Run(t, func(t *testing.T) storage.Storage {
				c := cfg()
				c.Name = "mux"
				m, err := New(c, Options{})
				if err != nil {
					t.Fatal(err)
				}
				return closing{m}
			}, storagetest.Options{MaxBody: 1 << 20, ListKeys: 1100, RepeatsUploads: name == "round-robin" || name == "weighted"})
		})
	}
}

func TestMuxOfMuxesKeepsTheContract(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) storage.Storage {
		var inner []Member
		for _, name := range []string{"left", "right"} {
			m, err := New(Config{Mode: ModeMirror, Members: threeStores()}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.Close)
			inner = append(inner, Member{Name: name, Storage: m})
		}
		m, err := New(Config{Mode: ModeFailover, Members: inner}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return closing{m}
	}, storagetest.Options{MaxBody: 1 << 20, ListKeys: 1100})
}

package proxy

import (
	"encoding/xml"
	"errors"
	"net/http"
	"slices"
	"testing"

	"github.com/suaveplan/storagemux/internal/muxconfig"
	"github.com/suaveplan/storagemux/internal/storage"
	"github.com/suaveplan/storagemux/internal/storage/storagetest/servers"
)

// TestNoFaultOfAMemberMakesASpreadKeyspaceLie does in keyspace spread what
// TestNoFaultOfAMemberMakesABodyWrong does, and asks for what only all members
// together know: while one cannot be asked, that nothing is there, that
// something is gone and what there is must be answered with 503.
func TestNoFaultOfAMemberMakesASpreadKeyspaceLie(t *testing.T) {
	server := servers.Versitygw(t)
	for _, mode := range []string{muxconfig.ModeFailover, muxconfig.ModeStickyByKey, muxconfig.ModeShield, muxconfig.ModeMirror} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newFaultyWorld(t, server, mode, muxconfig.KeyspaceSpread)
			for i := range faults {
				for victim := range w.stores {
					w.endure(t, faults[i], victim)
				}
			}
		})
	}
}

const (
	missingKey = "missing"
	doomedKey  = "doomed"
)

// askForWhatIsNot wants a key that no store holds never to be found, and not to
// be called missing while a member cannot be asked.
func (w *faultyWorld) askForWhatIsNot(t *testing.T, name string, one fault) {
	for range rounds {
		response, text, err := w.send(t.Context(), http.MethodGet, missingKey, nil)
		if err == nil && response.StatusCode == http.StatusNotFound && !one.mute {
			continue
		}
		mustBeUnavailable(t, name+": GET of what no store holds", one, response, text, err)
	}
}

// listStable wants a list that is answered to be the union of all members.
func (w *faultyWorld) listStable(t *testing.T, name string, one fault) {
	for range rounds {
		response, text, err := w.send(t.Context(), http.MethodGet, "?list-type=2&prefix=stable-", nil)
		if err == nil && response.StatusCode == http.StatusOK && !one.mute {
			var list struct {
				Keys []string `xml:"Contents>Key"`
			}
			var want []string
			for i := range stableKeys {
				want = append(want, stableKey(i))
			}
			if err := xml.Unmarshal(text, &list); err != nil || !slices.Equal(list.Keys, want) {
				t.Errorf("%s: the list names %q, want %q: %v", name, list.Keys, want, err)
			}
			continue
		}
		mustBeUnavailable(t, name+": list", one, response, text, err)
	}
}

// placeDoomed stores on every member the object that deleteDoomed deletes.
func (w *faultyWorld) placeDoomed(t *testing.T) {
	t.Helper()
	for _, store := range w.stores {
		store.put(t, doomedKey, []byte(doomedKey))
	}
}

// deleteDoomed reports whether the object was said to be deleted.
func (w *faultyWorld) deleteDoomed(t *testing.T, name string, one fault) bool {
	response, text, err := w.send(t.Context(), http.MethodDelete, doomedKey, nil)
	if err == nil && response.StatusCode == http.StatusNoContent && !one.mute {
		return true
	}
	mustBeUnavailable(t, name+": DELETE", one, response, text, err)
	return false
}

func (w *faultyWorld) mustBeGone(t *testing.T, name string) {
	t.Helper()
	for i, store := range w.stores {
		if _, err := store.direct.Stat(t.Context(), doomedKey, storage.StatOptions{}); !errors.Is(err, storage.ErrKeyNotFound) {
			t.Errorf("%s: DELETE was answered 204, and store %d says of the object: %v", name, i, err)
		}
	}
}

// mustBeUnavailable wants the answer to be 503 with a Retry-After.
func mustBeUnavailable(t *testing.T, what string, one fault, response *http.Response, text []byte, err error) {
	t.Helper()
	switch {
	case err != nil:
		t.Errorf("%s: %v", what, err)
	case response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "":
		t.Errorf("%s while a member fails (mute: %v): status %d, Retry-After %q: %s", what, one.mute, response.StatusCode, response.Header.Get("Retry-After"), text)
	}
}

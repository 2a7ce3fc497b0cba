package staged

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/suaveplan/storagemux/internal/storage"
)

func TestAMarkerIsWhatItsKeySays(t *testing.T) {
	id := newID(time.Now())
	for _, m := range []marker{
		{1, 0, 0, 0, rand.Text()},
		{storage.MaxParts, time.Now().UnixNano(), 5 << 30, ^uint64(0), rand.Text()},
	} {
		key := m.key(id)
		if got, ok := parseMarker(id, key); !ok || got != m {
			t.Errorf("%q is %+v, %t, want %+v", key, got, ok, m)
		}
		if !strings.HasPrefix(key, partPrefix(id, m.number)) || storage.ValidateKey(key) != nil || len(key) > 240 {
			t.Errorf("the key %q will not do", key)
		}
		for _, other := range []string{key + "x", key[:len(key)-1], strings.ToUpper(key), strings.Replace(key, "p/", "d/", 1), "", id} {
			if got, ok := parseMarker(id, other); ok {
				t.Errorf("%q is taken for %+v", other, got)
			}
		}
	}
}

func TestAnIDTellsWhenItsUploadBegan(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC)
	id := newID(now)
	if at, ok := begunAt(id); !ok || !at.Equal(now) {
		t.Errorf("%q began at %s, %t", id, at, ok)
	}
	if later := newID(now.Add(time.Hour)); later < id {
		t.Errorf("%q comes before %q", later, id)
	}
	for _, bad := range []string{"", "-", id + "x", id[1:], "../" + id, strings.Replace(id, "-", "/", 1), "zzzzzzzzzzzz" + id[12:], "-00000000001" + id[12:]} {
		if _, ok := begunAt(bad); ok {
			t.Errorf("%q is taken for an id", bad)
		}
	}
}

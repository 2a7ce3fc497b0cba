package controller

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestTurnsAreTakenInTheOrderInWhichTheyWereAskedFor(t *testing.T) {
	key := func(name string) objectKey {
		return objectKey{"StorageBackend", types.NamespacedName{Name: name}}
	}
	var woken []string
	turns := &turns{limit: 2, wake: func(k objectKey) { woken = append(woken, k.Name) }}
	for name, want := range map[string]bool{"a": true, "b": true} {
		if turns.take(key(name)) != want {
			t.Fatalf("%s must have a turn", name)
		}
	}
	for _, name := range []string{"c", "d", "c", "e"} {
		if turns.take(key(name)) {
			t.Fatalf("%s must wait", name)
		}
		turns.end(key(name)) // a pass without a turn frees none
	}
	if len(woken) > 0 {
		t.Fatalf("%v woken although no turn was free", woken)
	}
	turns.end(key("b"))
	if !slices.Equal(woken, []string{"c"}) {
		t.Fatalf("woken %v, want c", woken)
	}
	if turns.take(key("f")) || !turns.take(key("c")) {
		t.Fatal("the turn is that of the one that was woken")
	}
	turns.end(key("c"))
	turns.end(key("d")) // it had nothing to write after all
	turns.end(key("a"))
	if !slices.Equal(woken, []string{"c", "d", "e", "f"}) {
		t.Fatalf("woken %v, want c d e f", woken)
	}
	turns.end(key("e"))
	turns.end(key("f"))
	if !turns.take(key("g")) || !turns.take(key("h")) || turns.take(key("i")) {
		t.Fatal("two turns must be free in the end")
	}
}

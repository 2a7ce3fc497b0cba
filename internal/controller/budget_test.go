package controller

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func budgetKey(name string) objectKey {
	return objectKey{"StorageMux", types.NamespacedName{Namespace: "ns", Name: name}}
}

func TestFiguresOfOneObjectAreWrittenOncePerInterval(t *testing.T) {
	b := newFigureBudget(15*time.Second, 10)
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	if wait := b.take(budgetKey("a"), now); wait != 0 {
		t.Fatalf("the first write waits %s", wait)
	}
	if wait := b.take(budgetKey("a"), now.Add(5*time.Second)); wait != 10*time.Second {
		t.Errorf("a write after 5s waits %s, want 10s", wait)
	}
	if due := b.due(budgetKey("a"), now.Add(5*time.Second)); due != 10*time.Second {
		t.Errorf("due in %s, want 10s", due)
	}
	if wait := b.take(budgetKey("a"), now.Add(15*time.Second)); wait != 0 {
		t.Errorf("a write after 15s waits %s", wait)
	}
	b.wrote(budgetKey("a"), now.Add(40*time.Second))
	if wait := b.take(budgetKey("a"), now.Add(41*time.Second)); wait != 14*time.Second {
		t.Errorf("a write 1s after one for another reason waits %s, want 14s", wait)
	}
	b.forget(budgetKey("a"))
	if due := b.due(budgetKey("a"), now); due != 0 {
		t.Errorf("a forgotten object is due in %s", due)
	}
}

func TestAllObjectsShareTheRateFirstComeFirstServed(t *testing.T) {
	b := newFigureBudget(15*time.Second, 10)
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	waits := map[string]time.Duration{}
	for i := range 30 {
		name := fmt.Sprint(i)
		waits[name] = b.take(budgetKey(name), now)
		if want := max(0, time.Duration(i-9)*100*time.Millisecond); waits[name] != want {
			t.Errorf("object %d waits %s, want %s", i, waits[name], want)
		}
	}
	// Asking early again neither loses the place nor takes another.
	if again := b.take(budgetKey("29"), now.Add(time.Second)); again != time.Second {
		t.Errorf("object 29 waits %s more, want 1s", again)
	}
	for i := 10; i < 30; i++ {
		name := fmt.Sprint(i)
		if wait := b.take(budgetKey(name), now.Add(waits[name])); wait != 0 {
			t.Errorf("object %d came in its turn and waits %s more", i, wait)
		}
	}
}

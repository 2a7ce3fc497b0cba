package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestAPassWaitsForTheVersionThatWasWrittenLast(t *testing.T) {
	at := func(version string) *metav1.ObjectMeta { return &metav1.ObjectMeta{ResourceVersion: version} }
	key := objectKey{"StorageMux", types.NamespacedName{Name: "assets"}}
	now := time.Now()
	for name, test := range map[string]struct {
		written, cached string
		later           time.Duration
		want            bool
	}{
		"the cache is behind":                  {"1002", "998", time.Second, true},
		"the cache has it":                     {"1002", "1002", 0, false},
		"somebody else wrote since":            {"1002", "1003", 0, false},
		"the cache is behind for very long":    {"1002", "998", cachePatience, false},
		"the written version is no number":     {"x", "998", 0, false},
		"the cached version is no number":      {"1002", "x", 0, false},
		"a longer number is the later version": {"1000", "999", 0, true},
	} {
		var writes ownWrites
		writes.wrote(key, at(test.written), now)
		if got := writes.ahead(key, at(test.cached), now.Add(test.later)); got != test.want {
			t.Errorf("%s: ahead is %t, want %t", name, got, test.want)
		}
	}
	var writes ownWrites
	if writes.ahead(key, at("1"), now) {
		t.Error("nothing was written")
	}
	writes.wrote(key, at("2"), now)
	writes.forget(key)
	if writes.ahead(key, at("1"), now) {
		t.Error("what is forgotten must not hold anything up")
	}
}

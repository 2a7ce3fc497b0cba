package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

func TestDurationMeansWhatItSays(t *testing.T) {
	for text, want := range map[v1alpha1.Duration]time.Duration{
		"250ms":               250 * time.Millisecond,
		"1h30m":               90 * time.Minute,
		"1m1m":                2 * time.Minute,
		"99999h1m1s1ms":       99999*time.Hour + time.Minute + time.Second + time.Millisecond,
		"0s":                  0,
		v1alpha1.Duration(""): 0,
	} {
		if got, err := text.Parse(); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	if _, err := v1alpha1.Duration("soon").Parse(); err == nil {
		t.Error(`"soon" was parsed`)
	}
}

func TestDurationFallsBackOnlyWhereItIsUnsetOrMalformed(t *testing.T) {
	for text, want := range map[v1alpha1.Duration]time.Duration{"": time.Hour, "soon": time.Hour, "0s": 0, "2s": 2 * time.Second} {
		if got := text.Or(time.Hour); got != want {
			t.Errorf("%q or an hour is %v, want %v", text, got, want)
		}
	}
}

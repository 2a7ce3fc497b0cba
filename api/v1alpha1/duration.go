package v1alpha1

import (
	"fmt"
	"time"
)

// Duration is a length of time in the form of the Gateway API: one to four numbers of at most five digits, each followed by
// its unit h, m, s or ms, such as 30s, 1h30m or 250ms. The empty string means unset.
//
// +kubebuilder:validation:Pattern=`^([0-9]{1,5}(h|m|s|ms)){1,4}$`
// +kubebuilder:validation:MaxLength=28
type Duration string

// Parse returns the length of time that d stands for, and zero for the empty string.
func (d Duration) Parse() (time.Duration, error) {
	if d == "" {
		return 0, nil
	}
	parsed, err := time.ParseDuration(string(d))
	if err != nil {
		return 0, fmt.Errorf("parsing duration %q: %w", string(d), err)
	}
	return parsed, nil
}

// Or returns the length of time that d stands for, and fallback when d is unset or cannot be parsed, which the schema
// excludes for objects that an API server stored.
func (d Duration) Or(fallback time.Duration) time.Duration {
	parsed, err := d.Parse()
	if d == "" || err != nil {
		return fallback
	}
	return parsed
}

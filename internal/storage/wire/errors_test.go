package wire

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-3": 0, "soon": 0,
		"Mon, 01 Jun 2026 10:00:30 GMT": 30 * time.Second, "Mon, 01 Jun 2026 09:00:00 GMT": 0,
	} {
		h := http.Header{"Retry-After": {value}, "Date": {"Mon, 01 Jun 2026 10:00:00 GMT"}}
		if got := RetryAfter(h); got != want {
			t.Errorf("%q is %s, want %s", value, got, want)
		}
	}
}

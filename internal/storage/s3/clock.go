package s3

import (
	"net/http"
	"sync/atomic"
	"time"
)

// clock is the time as the store sees it: signatures carry the time, and a
// store refuses those that are some minutes off.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// adjust takes over the store's time from an answer. It reports whether that
// told one.
func (c *clock) adjust(h http.Header) bool {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return false
	}
	c.ahead.Store(int64(time.Until(date)))
	return true
}

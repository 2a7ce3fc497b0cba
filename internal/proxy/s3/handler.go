package s3

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Handler answers S3 requests. It is safe for concurrent use.
type Handler struct {
	opts     Options
	started  time.Time
	config   atomic.Pointer[Config]
	inFlight atomic.Int64
}

// New returns a Handler that answers 503 until SetConfig is called.
func New(opts Options) *Handler {
	opts = opts.withDefaults()
	return &Handler{opts: opts, started: opts.Now()}
}

// SetConfig puts c in the place of the configuration before. Requests that run
// end with the one they began with.
func (h *Handler) SetConfig(c *Config) { h.config.Store(c) }

// InFlight returns the number of requests that run.
func (h *Handler) InFlight() int64 { return h.inFlight.Load() }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "not configured", http.StatusServiceUnavailable)
}

package proxy

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// health answers the probes of the kubelet.
type health struct {
	stopping atomic.Bool
	// applied says whether a document is in force, and if not, why the
	// newest was refused.
	applied func() (ok bool, why string)
}

// leave makes connections end with the request that they carry once the proxy is
// on its way out, while it still takes new ones: when the port closes, no client
// is left with a connection on which it is about to send.
func (h *health) leave(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

func (h *health) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", h.ready)
}

// ready never depends on a backend: a proxy all of whose backends are down
// still gives better answers than no proxy.
func (h *health) ready(w http.ResponseWriter, _ *http.Request) {
	ok, why := h.applied()
	switch {
	case h.stopping.Load():
		http.Error(w, "stopping", http.StatusServiceUnavailable)
	case !ok && why != "":
		http.Error(w, "no valid document yet: "+why, http.StatusServiceUnavailable)
	case !ok:
		http.Error(w, "no document yet", http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, "ok")
	}
}

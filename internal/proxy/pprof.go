package proxy

import (
	"net/http"
	"net/http/pprof"
)

// profiles adds Go's profiles to the admin port. One that samples must end
// within the port's time limit, a minute.
func profiles(admin *http.ServeMux) {
	admin.HandleFunc("GET /debug/pprof/", pprof.Index)
	admin.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	admin.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	admin.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
}

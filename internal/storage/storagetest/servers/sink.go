package servers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Sink runs a server that takes whatever any store writes, keeps nothing of it
// and says that all is well: for figures that a server must not bound. It is no
// server of any kind and shows nothing else.
func Sink(t testing.TB) string {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r.Body}, make([]byte, 256<<10))
		switch {
		case strings.HasPrefix(r.URL.Path, "/auth/"):
			w.Header().Set("X-Auth-Token", "token")
			w.Header().Set("X-Storage-Url", "http://"+r.Host+"/v1/account")
		case r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == "PROPFIND":
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Query().Has("X-Amz-Signature") || strings.HasPrefix(r.Header.Get("Authorization"), "AWS4"):
			w.Header().Set("ETag", `"00000000000000000000000000000000"`)
		default:
			w.Header().Set("ETag", `"00000000000000000000000000000000"`)
			w.WriteHeader(http.StatusCreated)
		}
	})
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

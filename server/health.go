package server

import (
	"net/http"

	"holdfast/engine"
)

// health responds to process monitors: /healthz reports that the process runs, /readyz that it can serve. Neither
// needs a key or reveals anything else.
func health(e *engine.Engine) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		if r.URL.Path == readyPath {
			if err := e.Insight.Ready(); err != nil {
				http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = w.Write([]byte("ok\n"))
	})
}

const (
	healthPath  = "/healthz"
	readyPath   = "/readyz"
	metricsPath = "/metrics"
)

// newMetricsHandler returns the handler of the separate metrics listener.
func newMetricsHandler(e *engine.Engine, metrics http.Handler) http.Handler {
	watched := health(e)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case metricsPath:
			metrics.ServeHTTP(w, r)
		case healthPath, readyPath:
			watched.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

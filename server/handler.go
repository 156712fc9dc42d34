package server

import (
	"net/http"
	"strings"

	"holdfast/engine"
	"holdfast/server/api"
	"holdfast/web"
)

// newHandler hands each request to its part by the beginning of its path.
// http.ServeMux is not used: it would clean paths by redirects, and object
// keys are exact.
func newHandler(e *engine.Engine, opts Options) (http.Handler, error) {
	v1, err := api.New(e, api.Options{BaseURL: opts.BaseURL, Log: opts.Log, Answered: opts.Answered})
	if err != nil {
		return nil, err
	}
	console, err := web.New(e, web.Options{BaseURL: opts.BaseURL, Log: opts.Log})
	if err != nil {
		return nil, err
	}
	watched := health(e)
	objects := &downloads{engine: e, log: opts.Log}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == "/v1", strings.HasPrefix(path, "/v1/"):
			v1.ServeHTTP(w, r)
		case strings.HasPrefix(path, engine.ObjectPath), strings.HasPrefix(path, engine.ExportPath):
			objects.ServeHTTP(w, r)
		case path == healthPath, path == readyPath:
			watched.ServeHTTP(w, r)
		default:
			console.ServeHTTP(w, r)
		}
	}), nil
}

package api

import (
	"net/http"
	"strings"

	"holdfast/engine"
	"holdfast/engine/model"
	"holdfast/server/content"
	"holdfast/server/gate"
)

// Pages of other origins may use the objects of a bucket as its rules say: by the API, by resumable uploads and by
// links. Their requests have a key or a link like all others. Before them a browser asks without one (a preflight); the
// answer about a bucket that does not exist is that of a bucket without rules.

// objectsOf returns the bucket of an API path of its objects.
func objectsOf(path string) (bucket string, ok bool) {
	rest, ok := strings.CutPrefix(path, Prefix+"/buckets/")
	bucket, rest, _ = strings.Cut(rest, "/")
	return bucket, ok && (rest == "objects" || strings.HasPrefix(rest, "objects/"))
}

// rulesOf returns what a bucket allows to pages of other origins.
func rulesOf(e *engine.Engine, bucket string) []model.CORSRule {
	_, rules, err := e.Objects.ObjectPreflight(&model.Call{}, bucket[:min(len(bucket), maxID)], "")
	if err != nil {
		return nil
	}
	return rules
}

// allowOrigin lets the page of another origin that sends a request about a bucket read the response, also that of a
// refusal, if a rule allows the request.
func allowOrigin(e *engine.Engine, w http.ResponseWriter, r *http.Request, bucket string, exposed ...string) {
	if origin := r.Header.Get("Origin"); origin != "" {
		content.AllowOrigin(w.Header(), rulesOf(e, bucket), origin, r.Method, exposed...)
	}
}

// exposedHeaders are the headers of the API's responses that pages of other origins may read.
var exposedHeaders = []string{"ETag", "Idempotency-Replayed", "RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-Id"}

// ServeHTTP implements http.Handler.
func (r *router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if bucket, ok := objectsOf(req.URL.Path); ok {
		if content.IsPreflight(req) {
			r.preflight(bucket).ServeHTTP(w, req)
			return
		}
		allowOrigin(r.gate.Engine, w, req, bucket, exposedHeaders...)
	}
	r.Router.ServeHTTP(w, req)
}

func (r *router) preflight(bucket string) http.Handler {
	return r.gate.Preflight(func(x *gate.Exchange) error {
		if !content.Preflight(x.Header(), rulesOf(r.gate.Engine, bucket), x.Request) {
			return model.Errorf(model.CodeNotFound, "no rule of the bucket (cors) allows this request to pages of that origin, or there is no such bucket")
		}
		return empty(x, http.StatusNoContent)
	})
}

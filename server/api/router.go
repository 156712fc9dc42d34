package api

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/julienschmidt/httprouter"

	"holdfast/engine/model"
	"holdfast/server/gate"
)

// operationKey and formKey are where a huma operation carries its row of the
// operations table, and the form of its requests.
const (
	operationKey = "holdfast.operation"
	formKey      = "holdfast.form"
)

// router finds the row of the route table for a request, and serves it behind
// the gate: what huma registers (it is huma's adapter), and plain handlers.
type router struct {
	*httprouter.Router
	gate   *gate.Gate
	limits bodyLimits
	// api is set by register.
	api huma.API
}

// newRouter returns a router that never redirects: a cleaned path can turn
// the delete of an object into the delete of a bucket.
func newRouter(g *gate.Gate, limits bodyLimits) *router {
	r := &router{Router: httprouter.New(), gate: g, limits: limits}
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleMethodNotAllowed = false
	r.HandleOPTIONS = false
	r.NotFound = g.Open(model.Operation{Action: model.ActionUnknown}, http.HandlerFunc(r.unknown))
	return r
}

// Handle implements huma.Adapter. huma's context is of what the gate passes on.
func (r *router) Handle(op *huma.Operation, serve func(huma.Context)) {
	r.handle(op, r.limits.content, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		req.URL = plainQuery(req.URL)
		serve(humago.NewContext(op, req, w))
	}))
}

// plainQuery returns the address with its query in the one form that huma
// reads as everybody does: it takes "?key" for "?key=true".
func plainQuery(u *url.URL) *url.URL {
	if u.RawQuery == "" {
		return u
	}
	plain := *u
	plain.RawQuery = u.Query().Encode()
	return &plain
}

// handle routes an operation: the gate, the form of the request, its
// Idempotency-Key, of which content says what repetitions must share, and next.
func (r *router) handle(op *huma.Operation, content func(*http.Request) ([]byte, error), next http.Handler) {
	row := op.Metadata[operationKey].(model.Operation)
	form := newForm(op, r.api.OpenAPI().Components.Schemas, r.limits)
	op.Metadata[formKey] = form
	if takesOnce(op.Method, row) {
		next = gate.Once(content, next)
	}
	admitted := r.gate.Handler(row, form.check(next))
	r.Router.Handle(op.Method, Prefix+routerPath(op.Path), func(w http.ResponseWriter, req *http.Request, params httprouter.Params) {
		for _, p := range params {
			req.SetPathValue(p.Key, pathValue(p))
		}
		admitted.ServeHTTP(w, req)
	})
}

// formOf returns the form of an operation's requests.
func formOf(op *huma.Operation) *form { return op.Metadata[formKey].(*form) }

// routerPath turns {names} into the router's :names, and the key of an object
// into a catch-all: keys hold slashes, and a parameter would end at the first.
func routerPath(path string) string {
	return strings.NewReplacer("{key}", "*key", "{", ":", "}", "").Replace(path)
}

// maxID is longer than any id. More than that is neither looked up nor written
// to the audit log.
const maxID = 64

// pathValue returns the value of a parameter of a path. The router gives the
// rest of a path with the slash before it, of which exactly one is taken off:
// the key of the object at …/objects//a is "/a". Ids are cut off where none is
// that long.
func pathValue(p httprouter.Param) string {
	if p.Key == "key" {
		return strings.TrimPrefix(p.Value, "/")
	}
	return p.Value[:min(len(p.Value), maxID)]
}

// maxNote bounds, in bytes, what of an unknown request's own words the audit
// log keeps.
const maxNote = 256

// unknown answers every path and method that is not in the route table.
func (r *router) unknown(w http.ResponseWriter, req *http.Request) {
	gate.Identify(req) // a key is not needed to be told 404
	call := gate.CallOf(req.Context())
	call.Note("method", model.CleanText(req.Method, maxNote))
	call.Note("path", model.CleanText(req.URL.Path, maxNote))
	refusal := fail(req.Context(), model.Errorf(model.CodeNotFound, "there is nothing at this method and path; %s/openapi.json lists what there is", Prefix))
	status := refusal.GetStatus()
	if req.Method == http.MethodTrace || req.Method == http.MethodConnect {
		// No resource can have these: what is wrong is the method alone (RFC 9110,
		// 15.5.6).
		status = http.StatusMethodNotAllowed
		w.Header().Set("Allow", strings.Join(r.methodsAt(req.URL.Path), ", "))
	}
	w.WriteHeader(status)
	_ = writeJSON(w, refusal)
}

// methodsAt returns the methods that a path has, sorted.
func (r *router) methodsAt(path string) []string {
	var methods []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut} {
		if handle, _, _ := r.Lookup(method, path); handle != nil {
			methods = append(methods, method)
		}
	}
	return methods
}

// actionDescription is the audit action of reading the API's description,
// which needs no key and is no operation of the specification.
const actionDescription model.Action = "openapi.get"

// document serves the OpenAPI document.
func (r *router) document(path string, text []byte) {
	r.Handler(http.MethodGet, Prefix+path, r.gate.Open(model.Operation{Action: actionDescription},
		http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			gate.Identify(req)
			_, _ = whole{w}.Write(text)
		})))
}

package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/julienschmidt/httprouter"

	"holdfast/engine/model"
	"holdfast/server/gate"
)

// operationKey and formKey are the metadata keys under which a huma operation carries its row of the operations
// table and the form of its requests.
const (
	operationKey = "holdfast.operation"
	formKey      = "holdfast.form"
)

// router is huma's adapter. It finds the row of the route table for a request, and has huma serve the request after
// the gate.
type router struct {
	*httprouter.Router
	gate *gate.Gate
	// api is set by register.
	api huma.API
}

// newRouter returns a router that never redirects: a cleaned path could turn the deletion of an object into the
// deletion of a bucket.
func newRouter(g *gate.Gate) *router {
	r := &router{Router: httprouter.New(), gate: g}
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.HandleMethodNotAllowed = false
	r.HandleOPTIONS = false
	r.NotFound = g.Open(model.Operation{Action: model.ActionUnknown}, r.unknown)
	return r
}

// Handle implements huma.Adapter. A request passes the gate, the form, the check of its Idempotency-Key, and huma.
func (r *router) Handle(op *huma.Operation, serve func(huma.Context)) {
	row := op.Metadata[operationKey].(model.Operation)
	form := newForm(op, r.api.OpenAPI().Components.Schemas)
	op.Metadata[formKey] = form
	admitted := r.gate.Handler(row, func(x *gate.Exchange) error {
		err := form.check(x)
		if err == nil && takesIdempotencyKey(op.Method, row) {
			err = x.NoteIdempotencyKey(form.content)
		}
		if err == nil {
			serve(humago.NewContext(op, x.Request, x))
		}
		return err
	})
	r.handle(op.Method, routerPath(op.Path), func(w http.ResponseWriter, req *http.Request, params httprouter.Params) {
		for _, p := range params {
			req.SetPathValue(p.Key, pathValue(p))
		}
		admitted.ServeHTTP(w, req)
	})
}

// handle serves a method and path. HEAD is served where GET is, as the same operation: net/http leaves out the body.
func (r *router) handle(method, path string, h httprouter.Handle) {
	r.Router.Handle(method, Prefix+path, h)
	if method == http.MethodGet {
		r.Router.Handle(http.MethodHead, Prefix+path, h)
	}
}

// formOf returns the form of an operation's requests.
func formOf(op *huma.Operation) *form { return op.Metadata[formKey].(*form) }

// routerPath turns {names} into the router's :names, and the key of an object into a catch-all: keys contain
// slashes, and a parameter would end at the first.
func routerPath(path string) string {
	return strings.NewReplacer("{key}", "*key", "{", ":", "}", "").Replace(path)
}

// maxID is longer than any id. Longer values are neither looked up nor written to the audit log.
const maxID = 64

// pathValue returns the value of a path parameter. The router includes the slash before a catch-all, and pathValue
// removes exactly one: the key of the object at …/objects//a is "/a". Ids are truncated to a length that no id has.
func pathValue(p httprouter.Param) string {
	if p.Key == "key" {
		return strings.TrimPrefix(p.Value, "/")
	}
	return p.Value[:min(len(p.Value), maxID)]
}

// maxNote bounds the text of an unknown request that the audit log keeps, in bytes.
const maxNote = 256

// unknown responds to every path and method that is not in the route table.
func (r *router) unknown(x *gate.Exchange) error {
	req := x.Request
	x.Call.Note("method", model.CleanText(req.Method, maxNote))
	x.Call.Note("path", model.CleanText(req.URL.Path, maxNote))
	refusal := fail(x, model.Errorf(model.CodeNotFound, "there is nothing at this method and path; %s/openapi.json lists what there is", Prefix))
	status := refusal.GetStatus()
	if req.Method == http.MethodTrace || req.Method == http.MethodConnect {
		// No resource supports these methods, so only the method is wrong (RFC 9110, 15.5.6).
		status = http.StatusMethodNotAllowed
		x.Header().Set("Allow", strings.Join(r.methodsAt(req.URL.Path), ", "))
	}
	x.WriteHeader(status)
	return writeJSON(x, refusal)
}

// methodsAt returns the methods that a path supports, sorted.
func (r *router) methodsAt(path string) []string {
	var methods []string
	for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPatch, http.MethodPost, http.MethodPut} {
		if handle, _, _ := r.Lookup(method, path); handle != nil {
			methods = append(methods, method)
		}
	}
	return methods
}

// actionDescription is the audit action of reading the API's description. It needs no key and is not an operation of
// the specification.
const actionDescription model.Action = "openapi.get"

// document serves the OpenAPI document.
func (r *router) document(path string, written func() ([]byte, error)) {
	served := r.gate.Open(model.Operation{Action: actionDescription}, func(x *gate.Exchange) error {
		text, err := written()
		if err != nil {
			return err
		}
		x.Header()["Content-Length"] = []string{strconv.Itoa(len(text))}
		_, _ = x.Write(text)
		return nil
	})
	r.handle(http.MethodGet, path, func(w http.ResponseWriter, req *http.Request, _ httprouter.Params) { served.ServeHTTP(w, req) })
}

// Package gate is what every request with an API key passes before anything
// serves it: plain net/http middleware, the same for every protocol.
//
// A request is given an id and the headers of every answer. Its key is
// authenticated (401); the key's scopes and its dangerous-operations toggle are
// checked (403); it draws on its budget (429). Then the next handler has it,
// with the request's one model.Call in the context (CallOf). Once is the
// middleware for requests that their clients may repeat. Whatever the end, a
// panic included, the request is audited once.
//
// The gate reads nothing of a request but its head, except where the body says
// what the request needs. It writes no body itself: an error is answered by the
// function that the protocol gives (WriteError).
package gate

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"holdfast/engine"
	"holdfast/engine/model"
)

// Gate admits the requests of one protocol.
type Gate struct {
	Engine *engine.Engine
	Log    *slog.Logger
	// Header is set on every answer. Answers share its values.
	Header http.Header
	// WriteError answers an error with what the client is told of it.
	WriteError func(w http.ResponseWriter, call *model.Call, public *model.Error)
	// Field returns what gives the texts of the fields of a request's body, for
	// operations that ask it (model.Operation.AsksBody); nil where there are none.
	Field func(r *http.Request) func(name string) string
	// Answered is told of every request when it was answered; nil for nobody.
	Answered func(operation model.Action, status int, took time.Duration)
	// Known is called for every request with a valid key; it may be nil.
	Known func(r *http.Request)
}

// Handler has next serve the requests that may do op.
func (g *Gate) Handler(op model.Operation, next http.Handler) http.Handler {
	return g.handler(op, func(x *exchange) {
		if err := x.admit(); err != nil {
			x.refuse(err)
			return
		}
		next.ServeHTTP(x, x.request)
	})
}

// Open has next serve every request: it is audited as op, and not checked.
func (g *Gate) Open(op model.Operation, next http.Handler) http.Handler {
	return g.handler(op, func(x *exchange) { next.ServeHTTP(x, x.request) })
}

func (g *Gate) handler(op model.Operation, serve func(*exchange)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := g.begin(w, r, op)
		defer x.end()
		serve(x)
	})
}

// Identify finds out whose key an open request was made with, if any, so that
// the organization finds the request in its audit log.
func Identify(r *http.Request) { _ = of(r.Context()).authenticate() }

// admit authenticates and authorizes the request, or says what keeps it out.
// Where the body says what a request needs, it is read before the budget is
// asked for, and only for those who may do the operation's other requests.
func (x *exchange) admit() error {
	if x.call.Operation.Scope == "" {
		return x.gate.Engine.Core.ThrottleVisitor(x.call)
	}
	if err := x.authenticate(); err != nil {
		return err
	}
	if x.call.Operation.AsksBody() {
		if err := x.gate.Engine.Access.Permit(x.call); err != nil {
			return err
		}
		x.call.Operation = x.call.Operation.For(x.gate.Field(x.request))
	}
	return x.gate.Engine.Access.Authorize(x.call)
}

// authenticate finds out whose key the request was made with.
func (x *exchange) authenticate() error {
	err := x.gate.Engine.Access.Authenticate(x.call, bearer(x.request.Header))
	if err == nil && x.gate.Known != nil {
		x.gate.Known(x.request)
	}
	return err
}

// bearer returns the key of the one Authorization header, "" when there is
// none, more than one, or another scheme. The scheme's case does not matter
// (RFC 9110, 11.1).
func bearer(header http.Header) string {
	values := header["Authorization"]
	if len(values) != 1 {
		return ""
	}
	scheme, key, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.Trim(key, " ")
}

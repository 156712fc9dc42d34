// Package gate is net/http middleware that every request with an API key passes first, the same for every protocol.
//
// A request gets an id and the headers of every response. The gate authenticates its key (401), checks the key's
// scopes and its dangerous-operations toggle (403), and draws on its budget (429). Then the protocol's function gets
// the request, as an Exchange with the request's one model.Call. Exchange.NoteIdempotencyKey and Keep serve requests that clients
// may repeat. Whatever the outcome, including a panic, the request is audited once;
// only preflights are not.
//
// The gate reads only the head of a request, unless the body determines what the request needs. It writes no body
// itself: the protocol's WriteError writes the response to an error that the function returns.
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
	// Header is set on every response. Responses share its values.
	Header http.Header
	// Authenticate attributes a request to its key, or returns the error that rejects it. If it is nil, the key is in
	// the header Authorization.
	Authenticate func(x *Exchange) error
	// WriteError writes the response to an error, given the client's view of it; Exchange.Err is the error itself.
	WriteError func(x *Exchange, public *model.Error)
	// Field returns a function that gives the text of a body's field, for operations that need it
	// (model.Operation.AsksBody); nil if there are none.
	Field func(x *Exchange) func(name string) string
	// MaxBody and BodyTimeout bound the bodies that ReadBody reads.
	MaxBody     int64
	BodyTimeout time.Duration
	// Answered is called after the response to every request; it may be nil.
	Answered func(operation model.Action, status int, took time.Duration)
	// Known is called for every request with a valid key, but not for one by a link (model.Call.Linked), which
	// whoever has the link can send; it may be nil.
	Known func(r *http.Request)
}

// Handler has next serve the requests that are permitted to perform op. An error that next returns becomes the
// response.
func (g *Gate) Handler(op model.Operation, next func(*Exchange) error) http.Handler {
	return g.handler(op, (*Exchange).admit, next)
}

// Open has next serve every request without a check. It is audited as op, for the organization of the key if the key
// is valid.
func (g *Gate) Open(op model.Operation, next func(*Exchange) error) http.Handler {
	return g.handler(op, func(x *Exchange) error {
		_ = x.authenticate()
		return nil
	}, next)
}

// Preflight has next answer what a browser asks before a request of a page of another origin. It has no key and changes
// nothing: it draws on its address's budget, and only the request that follows is audited.
func (g *Gate) Preflight(next func(*Exchange) error) http.Handler {
	return g.handler(model.Operation{Action: model.ActionUnknown}, func(x *Exchange) error {
		x.Call.Audited = true
		return x.gate.Engine.Core.ThrottlePreflight(x.Call)
	}, next)
}

func (g *Gate) handler(op model.Operation, admit, next func(*Exchange) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := g.begin(w, r, op)
		defer x.end()
		err := admit(x)
		x.announceBudgets()
		if err == nil {
			err = next(x)
		}
		if err != nil {
			g.WriteError(x, x.Fail(err))
		}
	})
}

// admit authenticates and authorizes the request, or returns the error that rejects it. If the body determines what
// a request needs, admit reads it before it draws on the budget, and only for keys that may perform the operation's
// other requests.
func (x *Exchange) admit() error {
	if x.Call.Operation.Scope == "" {
		return x.gate.Engine.Core.ThrottleVisitor(x.Call)
	}
	if err := x.authenticate(); err != nil {
		return err
	}
	if x.Call.Operation.AsksBody() {
		if err := x.gate.Engine.Access.Permit(x.Call); err != nil {
			return err
		}
		x.Call.Operation = x.Call.Operation.For(x.gate.Field(x))
	}
	return x.gate.Engine.Access.Authorize(x.Call)
}

func (x *Exchange) authenticate() error {
	authenticate := x.gate.Authenticate
	if authenticate == nil {
		authenticate = (*Exchange).authenticateBearer
	}
	err := authenticate(x)
	if err == nil && x.gate.Known != nil && !x.Call.Linked {
		x.gate.Known(x.Request)
	}
	return err
}

// authenticateBearer authenticates the key in the only Authorization header. The scheme is case-insensitive (RFC 9110,
// 11.1).
func (x *Exchange) authenticateBearer() error {
	key := ""
	if values := x.Request.Header["Authorization"]; len(values) == 1 {
		if scheme, rest, _ := strings.Cut(values[0], " "); strings.EqualFold(scheme, "Bearer") {
			key = strings.Trim(rest, " ")
		}
	}
	return x.gate.Engine.Access.Authenticate(x.Call, key)
}

// Package gate is what every request with an API key passes before anything
// serves it: net/http middleware, the same for every protocol.
//
// A request is given an id and the headers of every answer. Its key is
// authenticated (401); the key's scopes and its dangerous-operations toggle are
// checked (403); it draws on its budget (429). Then the protocol's function has
// it, as an Exchange with the request's one model.Call. Exchange.Once and Keep
// are for requests that their clients may repeat. Whatever the end, a panic
// included, the request is audited once.
//
// The gate reads nothing of a request but its head, except where the body says
// what the request needs. It writes no body itself: what the function returns
// as an error is answered by another one of the protocol (WriteError).
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
	WriteError func(x *Exchange, public *model.Error)
	// Field returns what gives the texts of the fields of a request's body, for
	// operations that ask it (model.Operation.AsksBody); nil where there are none.
	Field func(x *Exchange) func(name string) string
	// MaxBody and BodyTimeout bound the bodies that ReadBody reads.
	MaxBody     int64
	BodyTimeout time.Duration
	// Answered is told of every request when it was answered; nil for nobody.
	Answered func(operation model.Action, status int, took time.Duration)
	// Known is called for every request with a valid key; it may be nil.
	Known func(r *http.Request)
}

// Handler has next serve the requests that may do op. What it returns is
// answered as an error.
func (g *Gate) Handler(op model.Operation, next func(*Exchange) error) http.Handler {
	return g.handler(op, (*Exchange).admit, next)
}

// Open has next serve every request: it is audited as op, for the organization
// of the key if it has a valid one, and not checked.
func (g *Gate) Open(op model.Operation, next func(*Exchange) error) http.Handler {
	return g.handler(op, func(x *Exchange) error {
		_ = x.authenticate()
		return nil
	}, next)
}

func (g *Gate) handler(op model.Operation, admit, next func(*Exchange) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := g.begin(w, r, op)
		defer x.end()
		err := admit(x)
		if err == nil {
			err = next(x)
		}
		if err != nil {
			g.WriteError(x, x.Fail(err))
		}
	})
}

// admit authenticates and authorizes the request, or says what keeps it out.
// Where the body says what a request needs, it is read before the budget is
// asked for, and only for those who may do the operation's other requests.
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

// authenticate finds out whose key the request was made with: that of the one
// Authorization header. The scheme's case does not matter (RFC 9110, 11.1).
func (x *Exchange) authenticate() error {
	key := ""
	if values := x.Request.Header["Authorization"]; len(values) == 1 {
		if scheme, rest, _ := strings.Cut(values[0], " "); strings.EqualFold(scheme, "Bearer") {
			key = strings.Trim(rest, " ")
		}
	}
	err := x.gate.Engine.Access.Authenticate(x.Call, key)
	if err == nil && x.gate.Known != nil {
		x.gate.Known(x.Request)
	}
	return err
}

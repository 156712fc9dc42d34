package api

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/julienschmidt/httprouter"

	"holdfast/engine"
	"holdfast/engine/model"
)

// gate is what every request passes before anything of it is read but its
// head: first 401, then 403, then 429, then 422 on its form.
type gate struct {
	engine *engine.Engine
	log    *slog.Logger
	// maxBody and bodyTimeout bound a JSON body.
	maxBody     int64
	bodyTimeout time.Duration
	answered    func(operation model.Action, status int, took time.Duration)
	known       func(r *http.Request)
}

// admit lets the exchange's request in, or says what keeps it out. Where the body
// says what a request needs, it is read before the budget is asked for, and only
// for those who may do the operation's other requests.
func (x *exchange) admit() error {
	if err := x.authorize(); err != nil {
		return err
	}
	return x.checkForm()
}

func (x *exchange) authorize() error {
	if x.call.Operation.Scope == "" {
		return x.gate.engine.ThrottleVisitor(x.call)
	}
	if err := x.identify(); err != nil {
		return err
	}
	if x.call.Operation.AsksBody() {
		if err := x.gate.engine.Permit(x.call); err != nil {
			return err
		}
		x.call.Operation = x.call.Operation.For(x.bodyText())
	}
	return x.gate.engine.Authorize(x.call)
}

// bodyText returns what gives the texts of a JSON body's fields. Of a body that is
// malformed it gives any or none: checkForm refuses that.
func (x *exchange) bodyText() func(field string) string {
	body, _ := x.receive()
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields)
	return func(field string) (value string) {
		_ = json.Unmarshal(fields[field], &value)
		return value
	}
}

// identify finds out whose key the request was made with.
func (x *exchange) identify() error {
	err := x.gate.engine.Authenticate(x.call, bearer(x.r.Header))
	if err == nil && x.gate.known != nil {
		x.gate.known(x.r)
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

// unknown answers every path and method that is not in the route table. allowed
// are the methods of the path.
func (g *gate) unknown(w http.ResponseWriter, r *http.Request, allowed []string) {
	x := g.begin(w, r, model.Operation{Action: model.ActionUnknown})
	defer x.end()
	_ = x.identify() // so that the organization finds it in its log; a key is not needed to be told 404
	x.call.Note("method", model.CleanText(r.Method, maxNote))
	x.call.Note("path", model.CleanText(r.URL.Path, maxNote))
	refusal := x.fail(model.Errorf(model.CodeNotFound, "there is nothing at this method and path; %s/openapi.json lists what there is", Prefix))
	if r.Method != http.MethodTrace && r.Method != http.MethodConnect {
		x.write(refusal)
		return
	}
	// No resource can have these: what is wrong is the method alone (RFC 9110,
	// 15.5.6).
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	x.SetStatus(http.StatusMethodNotAllowed)
	_ = writeJSON(x, refusal)
}

// actionDescription is the audit action of reading the API's description,
// which needs no key and is no operation of the specification.
const actionDescription model.Action = "openapi.get"

// document answers the OpenAPI document.
func (g *gate) document(text []byte) httprouter.Handle {
	return func(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
		x := g.begin(w, r, model.Operation{Action: actionDescription})
		defer x.end()
		_ = x.identify()
		x.SetStatus(http.StatusOK)
		_, _ = x.Write(text)
	}
}

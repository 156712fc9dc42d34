package operator

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// SandboxPath is the path for requesting sandboxes. The request is a lease: its body begins with a NewSandbox and
// stays open as long as the sandbox is wanted, for hours if need be. When the body ends, because its sender closed
// it or was killed, the sandbox is removed. The response has a SandboxEvent per line; the one with Removed or Code is
// the last.
const SandboxPath = "/sandbox"

// NewSandbox is a request for a sandbox.
type NewSandbox struct {
	Organization string `json:"organization"`     // id or name
	Name         string `json:"name,omitempty"`   // "" selects a free one
	Source       string `json:"source,omitempty"` // URL of a database to copy
	Operator     string `json:"operator"`         // the requesting account
}

// SandboxEvent is an event of a sandbox. One of its fields is set.
type SandboxEvent struct {
	Importing *Importing `json:"importing,omitempty"`
	Ready     *Sandbox   `json:"ready,omitempty"`
	// Ending is the reason why the sandbox is about to be removed although its holder has not released it.
	Ending  string     `json:"ending,omitempty"`
	Removed bool       `json:"removed,omitempty"`
	Code    model.Code `json:"code,omitempty"`
	Message string     `json:"message,omitempty"` // with Code
}

// Importing is the progress of the import into a sandbox.
type Importing struct {
	Phase   string `json:"phase"`
	Percent int    `json:"percent"`
}

// Sandbox is a sandbox that is ready for use.
type Sandbox struct {
	Name        string           `json:"name"`
	Environment wire.Environment `json:"environment"`
	// Psql is the path of a psql on this machine, or "", and PsqlEnv the variables it needs.
	Psql    string   `json:"psql"`
	PsqlEnv []string `json:"psql_env"`
	// Token is for requests to TestDatabasePath and TestTemplatePath while the sandbox is held.
	Token string `json:"token"`
}

// lease is one request for a sandbox.
type lease struct {
	Appliance
	call *model.Call
	tell func(SandboxEvent)
}

// serveSandbox creates a sandbox, and removes it when the request ends.
func (a Appliance) serveSandbox(w http.ResponseWriter, r *http.Request) {
	if !a.Leases.enter() {
		http.Error(w, errClosing.Message, http.StatusServiceUnavailable)
		return
	}
	defer a.Leases.leave()
	answer := http.NewResponseController(w)
	if err := answer.EnableFullDuplex(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body := json.NewDecoder(r.Body)
	body.DisallowUnknownFields()
	var in NewSandbox
	if err := body.Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// The server's limit is for ordinary requests. The rest of this body is the lease: it ends when the holder
	// releases it.
	if err := answer.SetReadDeadline(time.Time{}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	events := json.NewEncoder(w)
	l := lease{a, &model.Call{
		Operation: model.Operation{Action: model.ActionDatabaseCreate},
		Actor:     model.Actor{Type: model.ActorOperator, Name: in.Operator},
	}, func(event SandboxEvent) {
		// A holder that has gone does not get it.
		_ = errors.Join(events.Encode(event), answer.Flush())
	}}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(a.Leases.closing, func() { cancel(errClosing) })()
	go func() {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel(nil)
	}()
	l.serve(ctx, in)
}

func (l lease) serve(ctx context.Context, in NewSandbox) {
	made, err := l.create(ctx, in)
	l.Core.Finish(l.call, err)
	if err != nil {
		l.fail(err)
		return
	}
	held, release := l.Databases.SandboxHold(ctx, made.ID)
	l.hold(held, made)
	if why, ok := errors.AsType[*model.Error](context.Cause(held)); ok {
		l.tell(SandboxEvent{Ending: why.Message})
	}
	release()
	if err := l.remove(context.WithoutCancel(ctx), made.ID); err != nil {
		l.fail(err)
		return
	}
	l.tell(SandboxEvent{Removed: true})
}

// hold tells the holder that the sandbox is ready, and returns when it is to be removed.
func (l lease) hold(held context.Context, made databases.Sandbox) {
	tests, err := l.Databases.NewSuite(made)
	if err != nil || held.Err() != nil {
		return // it was deleted meanwhile
	}
	token, end := l.Leases.openSuite(tests)
	defer end()
	l.tell(SandboxEvent{Ready: &Sandbox{
		Name: made.Connection.Database, Environment: environment(made.Connection),
		Psql: made.Psql, PsqlEnv: made.PsqlEnv, Token: token,
	}})
	<-held.Done()
}

func (l lease) remove(ctx context.Context, id string) error {
	call := &model.Call{
		Operation: model.Operation{Action: model.ActionDatabaseDelete}, Actor: l.call.Actor, Organization: l.call.Organization,
	}
	err := l.Databases.SandboxRemove(ctx, call, id)
	l.Core.Finish(call, err)
	return err
}

func (l lease) create(ctx context.Context, in NewSandbox) (databases.Sandbox, error) {
	org, err := l.Access.Organization(in.Organization)
	if err != nil {
		return databases.Sandbox{}, err
	}
	l.call.Organization = org.ID
	return l.Imports.SandboxCreate(ctx, l.call, databases.NewSandbox{Name: in.Name, Source: model.NewSecret(in.Source)}, func(i model.Import) {
		l.tell(SandboxEvent{Importing: &Importing{Phase: i.Phase, Percent: i.Progress}})
	})
}

func (l lease) fail(err error) {
	response := failure(err)
	l.tell(SandboxEvent{Code: response.Code, Message: response.Message})
}

package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"holdfast/engine"
	"holdfast/engine/model"
)

// Path is the path for commands, which are posted.
const Path = "/command"

// maxRequest is the maximum size of a command in bytes.
const maxRequest = 1 << 20

// Request is one command.
type Request struct {
	// Action names the command in the table.
	Action model.Action `json:"action"`
	// Organization is the id or name of the command's organization; it is empty for commands about the appliance.
	Organization string          `json:"organization"`
	Arguments    json.RawMessage `json:"arguments"`
	// Operator is the name of the requesting account, for the audit log.
	Operator string `json:"operator"`
}

// Response is the outcome of a command: Result, or an error.
type Response struct {
	Result  json.RawMessage `json:"result,omitempty"`
	Code    model.Code      `json:"code,omitempty"`
	Message string          `json:"message,omitempty"`
}

// Appliance is what the commands operate on.
type Appliance struct {
	*engine.Engine
	// BaseURL is the URL of the console, without a trailing slash.
	BaseURL string
	// Leases are the leases that Handler gives out.
	Leases *Leases
}

// Handler serves the commands and the sandboxes.
func (a Appliance) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path, func(w http.ResponseWriter, r *http.Request) {
		var request Request
		if err := decode(io.LimitReader(r.Body, maxRequest), &request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, a.Run(r.Context(), request))
	})
	mux.HandleFunc("POST "+SandboxPath, a.serveSandbox)
	mux.HandleFunc("POST "+TestDatabasePath, a.serveTestDatabase)
	mux.HandleFunc("POST "+TestTemplatePath, a.serveTestTemplate)
	mux.HandleFunc("POST "+TestTemplatePath+"/{id}/finish", a.serveTestTemplateFinish)
	mux.HandleFunc("POST "+ExportPath, a.serveExport)
	return mux
}

func answer(w http.ResponseWriter, response Response) {
	w.Header().Set("Content-Type", "application/json")
	// A client that has gone does not get the response; the command was executed regardless.
	_ = json.NewEncoder(w).Encode(response)
}

// Run executes one command.
func (a Appliance) Run(ctx context.Context, request Request) Response {
	command, ok := commands()[request.Action]
	if !ok {
		return failure(model.Errorf(model.CodeNotFound, "no operator's command %q", request.Action))
	}
	call := &model.Call{
		Operation: model.Operation{Action: request.Action},
		Actor:     model.Actor{Type: model.ActorOperator, Name: request.Operator},
	}
	if command.inOrganization {
		org, err := a.Access.Organization(request.Organization)
		if err != nil {
			return failure(err)
		}
		call.Organization = org.ID
	}
	result, err := command.run(ctx, a, call, request.Arguments)
	a.Core.Finish(call, err)
	if err != nil {
		return failure(err)
	}
	text, err := json.Marshal(result)
	if err != nil {
		return failure(fmt.Errorf("encode result: %w", err))
	}
	return Response{Result: text}
}

// failure tells the operator everything: nothing is confidential to the operator.
func failure(err error) Response {
	response := Response{Code: model.CodeOf(err), Message: err.Error()}
	if public, ok := errors.AsType[*model.Error](err); ok && public.Err == nil {
		response.Message = public.Message
	}
	return response
}

func decode(r io.Reader, v any) error {
	decoder := json.NewDecoder(r)
	decoder.DisallowUnknownFields()
	return decoder.Decode(v)
}

func decodeArguments(text json.RawMessage, v any) error {
	if len(text) == 0 {
		return nil
	}
	if err := decode(bytes.NewReader(text), v); err != nil {
		return model.Invalid("arguments", "%v", err)
	}
	return nil
}

package api

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/core"
	"holdfast/server/api/wire"
	"holdfast/server/gate"
)

// plain registers a handler that reads the request itself and answers a single
// record. huma describes it: its parameters are those that I declares.
// body describes its body, and content is what repetitions of a request must
// share.
func plain[I, T any](
	body func(huma.Registry) *huma.RequestBody, content func(*http.Request) ([]byte, error),
	do func(http.ResponseWriter, *http.Request) (T, error),
) registrar {
	return func(r *router, op huma.Operation) {
		schemas := r.api.OpenAPI().Components.Schemas
		own := parametersOf(reflect.TypeFor[I](), schemas)
		op.Parameters = append(op.Parameters, own...)
		op.RequestBody = body(schemas)
		op.Responses = responsesOf(reflect.TypeFor[wire.Envelope[T, wire.Meta]](), append(op.Errors, http.StatusInternalServerError), schemas)
		r.api.OpenAPI().AddOperation(&op)
		r.handle(&op, content, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if err := formOf(&op).checkParameters(req, own, schemas); err != nil {
				gate.Refuse(w, req, err)
				return
			}
			data, err := do(w, req)
			respondPlain(w, req, data, err)
		}))
	}
}

func respondPlain[T any](w http.ResponseWriter, r *http.Request, data T, err error) {
	ctx := r.Context()
	if err == nil {
		err = keep(ctx, data)
	}
	if first, ok := errors.AsType[*core.FirstAnswer](err); ok {
		_ = writeJSON(w, replay(ctx, first))
		return
	}
	if err != nil {
		gate.Refuse(w, r, err)
		return
	}
	if err := writeJSON(w, wire.Envelope[T, wire.Meta]{Data: data, Meta: metaOf(gate.CallOf(ctx))}); err != nil {
		panic(err) // a record can always be encoded
	}
}

// parametersOf returns the parameters that the fields of an input declare, as
// huma describes them.
func parametersOf(input reflect.Type, schemas huma.Registry) (parameters []*huma.Param) {
	for _, field := range reflect.VisibleFields(input) {
		for _, in := range []string{"path", "query", "header"} {
			if name, ok := field.Tag.Lookup(in); ok {
				schema := huma.SchemaFromField(schemas, field, "")
				p := &huma.Param{Name: name, In: in, Description: schema.Description, Schema: schema}
				p.Required = in == "path" || field.Tag.Get("required") == "true"
				if in == "query" {
					p.Explode = new(false)
				}
				parameters = append(parameters, p)
			}
		}
	}
	return parameters
}

// responsesOf returns the answers of an operation: one of the type on success, and
// errors with some statuses.
func responsesOf(success reflect.Type, statuses []int, schemas huma.Registry) map[string]*huma.Response {
	responses := map[string]*huma.Response{}
	add := func(status int, of reflect.Type) {
		responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(of, true, "")}},
		}
	}
	add(http.StatusOK, success)
	for _, status := range statuses {
		add(status, reflect.TypeFor[Failure]())
	}
	return responses
}

// checkParameters checks parameters as huma does.
func (f *form) checkParameters(r *http.Request, parameters []*huma.Param, schemas huma.Registry) error {
	var found huma.ValidateResult
	query := r.URL.Query()
	for _, p := range parameters {
		at := huma.NewPathBuffer(nil, 0)
		at.Push(p.In)
		at.Push(p.Name)
		var value string
		switch p.In {
		case "path":
			value = r.PathValue(p.Name)
		case "query":
			value = query.Get(p.Name)
		case "header":
			value = r.Header.Get(p.Name)
		}
		if value != "" {
			huma.Validate(schemas, p.Schema, at, huma.ModeWriteToServer, value, &found)
		} else if p.Required {
			found.Add(at, value, "")
		}
	}
	if len(found.Errors) == 0 {
		return nil
	}
	return f.complaint("", found.Errors)
}

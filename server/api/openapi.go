package api

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
	"holdfast/server/gate"
)

// version is the version of the API's description.
const version = "1.0.0"

// securityScheme is the name of the bearer key in the description.
const securityScheme = "api_key"

func newDescription(opts Options) *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:   "holdfast",
			Version: version,
			Description: "Managed PostgreSQL databases, object storage and backups.\n\n" +
				"Keys are made in the console at " + opts.BaseURL + " or with `holdfast admin key create`.",
			License: &huma.License{Name: "Apache-2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"},
		},
		// Relative to the document's URL, so that it is also correct behind a proxy.
		Servers: []*huma.Server{{URL: Prefix}},
		Components: &huma.Components{
			Schemas:   newSchemas(),
			Responses: map[string]*huma.Response{},
			SecuritySchemes: map[string]*huma.SecurityScheme{securityScheme: {
				Type: "http", Scheme: "bearer", BearerFormat: model.KeyPrefix + "…",
				Description: "An API key of the organization. It must hold the operation's scope.",
			}},
		},
	}
}

// finishDescription adds what huma does not know.
func finishDescription(doc *huma.OpenAPI) {
	requests := map[string]bool{}
	for _, path := range doc.Paths {
		for _, described := range []**huma.Operation{&path.Get, &path.Post, &path.Put, &path.Patch, &path.Delete} {
			if *described == nil {
				continue
			}
			op := new(**described) // huma reads the original at each request
			*described = op
			if name := describeBody(op); name != "" {
				requests[name] = true
				for _, property := range doc.Components.Schemas.Map()[name].Properties {
					if property.Items != nil {
						requests[strings.TrimPrefix(property.Items.Ref, schemaPrefix)] = true
					}
				}
			}
			describeResponses(doc, op)
			for _, p := range op.Parameters {
				p.Schema.PatternDescription = "" // huma's message already has it, and it is not a JSON Schema keyword
			}
		}
	}
	closeNested(doc.Components.Schemas.Map(), requests)
	for name, schema := range doc.Components.Schemas.Map() {
		// A later version may add fields to responses; requests are closed.
		if schema.Type == huma.TypeObject && !requests[name] {
			schema.AdditionalProperties = nil
		}
		for _, property := range schema.Properties {
			property.PatternDescription = "" // as above
		}
	}
}

// describeBody finishes the description of an operation's body and returns the name of its schema, or "". It omits a
// body without fields: clients need not send it.
func describeBody(op *huma.Operation) string {
	if op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		return ""
	}
	schema := op.RequestBody.Content["application/json"].Schema
	if schema.Ref == "" { // NoFields
		op.RequestBody = nil
		return ""
	}
	schema.Extensions = nil // an optional body is not null
	return strings.TrimPrefix(schema.Ref, schemaPrefix)
}

// errorResponses are the error responses by status. Operations refer to them.
var errorResponses = map[int]struct{ name, description string }{
	http.StatusBadRequest:            {"DevicePending", "The device has no key yet, or gets none: `error.code` says which, as in RFC 8628."},
	http.StatusUnauthorized:          {"Unauthorized", "The request has no valid key."},
	http.StatusForbidden:             {"Forbidden", "The key may not do this, or the plan does not allow it."},
	http.StatusNotFound:              {"NotFound", "The organization has no such resource."},
	http.StatusConflict:              {"Conflict", "Something is in the way: a name is taken, or the resource is busy."},
	http.StatusPreconditionFailed:    {"PreconditionFailed", "The resource is not one of those in `If-Match`; `error.code` is `conflict`."},
	http.StatusRequestEntityTooLarge: {"TooLarge", "The body has too many bytes; `error.code` is `validation_error`."},
	http.StatusInsufficientStorage:   {"NoSpace", "The disk is full; `error.code` is `forbidden`."},
	http.StatusUnprocessableEntity:   {"ValidationFailed", "The request is malformed; `error.message` names the field and what would be right."},
	http.StatusTooManyRequests:       {"RateLimited", "The budget is used up."},
	http.StatusServiceUnavailable:    {"Unavailable", "The object's bytes are in the off-site copy only, which cannot be read now; `error.code` is `internal_error`."},
	http.StatusInternalServerError:   {"InternalError", "The appliance failed; its log has the cause, by the request's id."},
}

// describeResponses adds the headers of every response, and makes error responses components.
func describeResponses(doc *huma.OpenAPI, op *huma.Operation) {
	for key, response := range op.Responses {
		status, _ := strconv.Atoi(key)
		response.Headers = responseHeaders(op, status)
		if known, ok := errorResponses[status]; ok {
			response.Description = known.description
			doc.Components.Responses[known.name] = response
			op.Responses[key] = &huma.Response{Ref: "#/components/responses/" + known.name}
		}
	}
}

// draws reports whether requests of an operation draw on a budget.
func draws(op model.Operation) bool {
	return op.Scope == "" || slices.ContainsFunc(op.Acts(), func(act model.Operation) bool { return act.Rate != model.RateNone })
}

func responseHeaders(op *huma.Operation, status int) map[string]*huma.Header {
	headers := map[string]*huma.Header{
		"X-Request-Id": {Description: "Id of this request.", Schema: &huma.Schema{Type: huma.TypeString}},
	}
	if status == http.StatusTooManyRequests || status == http.StatusOK && draws(op.Metadata[operationKey].(model.Operation)) {
		headers["RateLimit-Policy"] = &huma.Header{
			Description: "The budgets that the request draws on: `\"create_backup\";q=10;w=60` is 10 requests in 60 seconds (draft-ietf-httpapi-ratelimit-headers-11).",
			Schema:      &huma.Schema{Type: huma.TypeString},
		}
		headers["RateLimit"] = &huma.Header{
			Description: "What is left of them: `\"create_backup\";r=9;t=60` is 9 requests, and one more in 60 seconds.",
			Schema:      &huma.Schema{Type: huma.TypeString},
		}
	}
	switch status {
	case http.StatusOK:
		if takesIdempotencyKey(op.Method, op.Metadata[operationKey].(model.Operation)) {
			headers[gate.ReplayedHeader] = &huma.Header{
				Description: "`true` if the answer repeats the first answer's data.", Schema: &huma.Schema{Type: huma.TypeBoolean},
			}
		}
	case StatusOf(model.CodeUnauthorized):
		headers["WWW-Authenticate"] = &huma.Header{Description: "`Bearer`.", Schema: &huma.Schema{Type: huma.TypeString}}
	case StatusOf(model.CodeRateLimited):
		headers["Retry-After"] = &huma.Header{
			Description: "Whole seconds until the next try.", Schema: &huma.Schema{Type: huma.TypeInteger},
		}
	}
	return headers
}

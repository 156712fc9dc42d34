package api

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
)

// version is that of the API's description.
const version = "1.0.0"

// schemaPrefix is where the schemas lie in the description.
const schemaPrefix = "#/components/schemas/"

// securityScheme is the name of the bearer key in the description.
const securityScheme = "api_key"

func newDescription(opts Options) *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:   "holdfast",
			Version: version,
			Description: "Managed PostgreSQL databases, object storage and backups.\n\n" +
				"Keys are made in the console at " + opts.ConsoleURL + " or with `holdfast admin key create`.",
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		// Relative to the document's own address, so that it is right behind a
		// proxy as well.
		Servers: []*huma.Server{{URL: Prefix}},
		Components: &huma.Components{
			Schemas: huma.NewMapRegistry(schemaPrefix, schemaName),
			SecuritySchemes: map[string]*huma.SecurityScheme{securityScheme: {
				Type: "http", Scheme: "bearer", BearerFormat: model.KeyPrefix + "…",
				Description: "An API key of the organization. It must hold the operation's scope.",
			}},
		},
	}
}

// finishDescription adds what huma cannot know.
func finishDescription(doc *huma.OpenAPI) {
	requests := map[string]bool{}
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Post, path.Put, path.Patch, path.Delete} {
			if op == nil {
				continue
			}
			if op.RequestBody != nil {
				requests[strings.TrimPrefix(op.RequestBody.Content["application/json"].Schema.Ref, schemaPrefix)] = true
			}
			if op.OperationID == model.OperationFor(model.ActionObjectUpload).Name {
				op.RequestBody = uploadBody()
				op.Description += " " + uploadRepeats
			}
			if op.Responses["200"].Content["application/json"].Schema.Ref == schemaPrefix+"NeverAnswer" {
				delete(op.Responses, "200")
			}
			describeHeaders(op)
		}
	}
	for name, schema := range doc.Components.Schemas.Map() {
		// A later version may add fields to answers; requests are closed.
		if schema.Type == huma.TypeObject && !requests[name] {
			schema.AdditionalProperties = true
		}
		allowNull(schema)
		for _, property := range schema.Properties {
			property.PatternDescription = "" // is in huma's message by now, and no word of JSON Schema
		}
	}
}

// allowNull lists null among the values of properties that may be null and
// have a list of values.
func allowNull(schema *huma.Schema) {
	for _, property := range schema.Properties {
		if property.Nullable && len(property.Enum) > 0 {
			property.Enum = append(property.Enum, nil)
		}
	}
}

// schemaName names the envelopes by what is in them: Envelope[Bucket, Meta]
// becomes BucketAnswer, Envelope[[]Bucket, ListMeta] BucketList.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for _, known := range []struct{ before, after, suffix string }{
		{"EnvelopeList", "ListMeta", "List"},
		{"EnvelopeList", "LogMeta", "Log"},
		{"Envelope", "Meta", "Answer"},
	} {
		if record, ok := between(name, known.before, known.after); ok {
			return record + known.suffix
		}
	}
	return name
}

func describeHeaders(op *huma.Operation) {
	for status, response := range op.Responses {
		response.Headers = map[string]*huma.Header{
			"X-Request-Id": {Description: "Id of this request.", Schema: &huma.Schema{Type: huma.TypeString}},
		}
		switch status {
		case strconv.Itoa(StatusOf(model.CodeUnauthorized)):
			response.Headers["WWW-Authenticate"] = &huma.Header{Schema: &huma.Schema{Type: huma.TypeString}}
		case strconv.Itoa(StatusOf(model.CodeRateLimited)):
			response.Headers["Retry-After"] = &huma.Header{
				Description: "Whole seconds until the next try.", Schema: &huma.Schema{Type: huma.TypeInteger},
			}
		}
	}
}

// orNull lets properties that are records be null as well; huma itself can
// say that of scalars only.
func orNull(s *huma.Schema, properties ...string) *huma.Schema {
	for _, name := range properties {
		s.Properties[name] = &huma.Schema{AnyOf: []*huma.Schema{s.Properties[name], {Type: "null"}}}
	}
	return s
}

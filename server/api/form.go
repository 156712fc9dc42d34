package api

import (
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
	"holdfast/server/gate"
)

// form describes the form of an operation's requests.
type form struct {
	parameters []*huma.Param
	// conditional requests may have If-Match.
	conditional bool
	query       []string // names of the query parameters
	booleans    []string // the boolean ones among them
	json        bool     // it accepts a JSON body
	required    bool     // and requires one
	fields      []string // of the body
}

func newForm(op *huma.Operation, schemas huma.Registry) *form {
	f := &form{parameters: op.Parameters, conditional: op.Metadata[operationKey].(model.Operation).Conditional}
	for _, p := range op.Parameters {
		if p.In == "query" {
			f.query = append(f.query, p.Name)
			if p.Schema.Type == huma.TypeBoolean {
				f.booleans = append(f.booleans, p.Name)
			}
		}
	}
	if op.RequestBody == nil || op.RequestBody.Content["application/json"] == nil {
		return f
	}
	schema := op.RequestBody.Content["application/json"].Schema
	if schema.Ref != "" {
		schema = schemas.SchemaFromRef(schema.Ref)
	}
	f.json, f.required = true, op.RequestBody.Required
	f.fields = slices.Sorted(maps.Keys(schema.Properties))
	return f
}

// check checks the headers, the query, and that the body is JSON, as far as huma does not. huma then checks fields
// and types.
func (f *form) check(x *gate.Exchange) error {
	if err := f.readCondition(x); err != nil {
		return err
	}
	if err := checkHeaders(x.Request.Header); err != nil {
		return err
	}
	if err := f.checkQuery(x.Request); err != nil {
		return err
	}
	if f.json {
		return f.checkBody(x)
	}
	return nil
}

// readCondition moves If-Match from the headers to the call, for operations that support it.
func (f *form) readCondition(x *gate.Exchange) (err error) {
	const name = "If-Match"
	values := x.Request.Header[name]
	if !f.conditional || len(values) == 0 {
		return nil
	}
	x.Call.IfMatch, err = model.ParseMatch(name, strings.Join(values, ","))
	x.Request.Header.Del(name)
	return err
}

// checkHeaders rejects conditions and content encodings, which no operation supports: ignoring a condition would
// violate RFC 9110 (13.1.1 and 13.1.4), and ignoring an encoding would store the wrong content. It also rejects
// repeated headers of which only the first value would be read.
func checkHeaders(header http.Header) error {
	if header.Get("Content-Encoding") != "identity" {
		if err := refuseHeaders(header, "is not supported here, so nothing was done: send the body as it is", "Content-Encoding"); err != nil {
			return err
		}
	}
	for _, name := range []string{
		"Content-Type", "Content-Encoding", "If-None-Match", "X-Checksum-Sha256", "X-Checksum-Crc32c",
		"Tus-Resumable", "Upload-Length", "Upload-Metadata", "Upload-Offset", "X-Object-Tags", "Content-Disposition",
	} {
		if len(header[name]) > 1 {
			return model.Invalid(name, "is given twice")
		}
	}
	return refuseHeaders(header, "is not supported here, so nothing was done: leave it out", "If-Match", "If-Unmodified-Since")
}

// refuseHeaders rejects the headers with these names, in canonical form.
func refuseHeaders(header http.Header, why string, names ...string) error {
	for _, name := range names {
		if header[name] != nil {
			return model.Invalid(name, "%s", why)
		}
	}
	return nil
}

// checkQuery rejects queries that parsers could interpret differently: malformed escapes, and parameters that are
// unknown or repeated. It rewrites the query in a form that huma parses like any other parser: huma takes "?key" for
// "?key=true".
func (f *form) checkQuery(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return model.Invalid("query", "is not well-formed: escape with %%XX, and separate parameters with &")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case !slices.Contains(f.query, name):
			return model.Invalid(showName(name), "is not a parameter here; %s", known("parameters", f.query))
		case len(query[name]) > 1:
			return model.Invalid(name, "is given twice")
		case query[name][0] == "" && name != "prefix" && name != "cursor":
			return model.Invalid(name, "must not be empty")
		case slices.Contains(f.booleans, name) && query[name][0] != "true" && query[name][0] != "false":
			return model.Invalid(name, "must be true or false")
		}
	}
	plain := *r.URL
	plain.RawQuery = query.Encode()
	r.URL = &plain
	return nil
}

func known(what string, names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	return "the " + what + " are " + strings.Join(names, ", ")
}

// fields returns a function that gives the text of a JSON body's field. For a malformed body the result is
// arbitrary: the form rejects that body.
func fields(x *gate.Exchange) func(name string) string {
	body, _ := x.ReadBody()
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields)
	return func(name string) (value string) {
		_ = json.Unmarshal(fields[name], &value)
		return value
	}
}

// checkBody checks the JSON body, which huma then decodes.
func (f *form) checkBody(x *gate.Exchange) error {
	body, err := x.ReadBody()
	if err != nil {
		return err
	}
	if len(body) == 0 {
		if f.required {
			return model.Invalid("body", "must be a JSON object; %s", known("fields", f.fields))
		}
		return nil
	}
	if given := x.Request.Header.Get("Content-Type"); given != "" {
		if media, _, err := mime.ParseMediaType(given); err != nil || media != "application/json" {
			return model.Invalid("Content-Type", "must be application/json")
		}
	}
	x.Request.Header.Set("Content-Type", "application/json")
	return checkJSON(body)
}

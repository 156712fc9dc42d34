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

// form is what an operation's requests look like from outside.
type form struct {
	parameters []*huma.Param
	query      []string // the names of those in the query
	booleans   []string // among those
	json       bool     // it takes a JSON body
	required   bool     // and needs one
	fields     []string // of the body
}

func newForm(op *huma.Operation, schemas huma.Registry) *form {
	f := &form{parameters: op.Parameters}
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

// check checks the headers, the query, and that the body is JSON, as far as huma
// leaves that open. huma then checks fields and types.
func (f *form) check(x *gate.Exchange) error {
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

// checkHeaders refuses what no operation supports, conditions and encodings of the
// body: to ignore one would be to do what the client has forbidden (RFC 9110,
// 13.1.1 and 13.1.4), or to store something else. And it refuses headers of
// which only the first value would be read.
func checkHeaders(header http.Header) error {
	if header.Get("Content-Encoding") != "identity" {
		if err := refuseHeaders(header, "is not supported here, so nothing was done: send the body as it is", "Content-Encoding"); err != nil {
			return err
		}
	}
	for _, name := range []string{
		"Content-Type", "Content-Encoding", "If-None-Match", "X-Checksum-Sha256", "X-Checksum-Crc32c",
		"Tus-Resumable", "Upload-Length", "Upload-Metadata", "Upload-Offset",
	} {
		if len(header[name]) > 1 {
			return model.Invalid(name, "is given twice")
		}
	}
	return refuseHeaders(header, "is not supported here, so nothing was done: leave it out", "If-Match", "If-Unmodified-Since")
}

// refuseHeaders refuses the headers of these names, in canonical form.
func refuseHeaders(header http.Header, why string, names ...string) error {
	for _, name := range names {
		if header[name] != nil {
			return model.Invalid(name, "%s", why)
		}
	}
	return nil
}

// checkQuery refuses queries that readers could understand differently: ill-
// formed escapes, and parameters that are unknown or given twice. It writes the
// query anew in the one form that huma reads as everybody does: huma takes "?key"
// for "?key=true".
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

// fields returns what gives the texts of a JSON body's fields. Of a body that is
// malformed it gives any or none: the form refuses that.
func fields(x *gate.Exchange) func(name string) string {
	body, _ := x.ReadBody()
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(body, &fields)
	return func(name string) (value string) {
		_ = json.Unmarshal(fields[name], &value)
		return value
	}
}

// checkBody checks the JSON body, which huma then reads.
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

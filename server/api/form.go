package api

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
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
	if op.RequestBody == nil {
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

// checkForm checks what huma leaves open: the headers, the query, and that the
// body is JSON. huma then checks fields and types.
func (x *exchange) checkForm() error {
	if err := checkHeaders(x.r.Header); err != nil {
		return err
	}
	if err := x.parseQuery(); err != nil {
		return err
	}
	if x.form.json {
		return x.readBody()
	}
	return nil
}

// checkHeaders refuses what no operation heeds, conditions and encodings of the
// body: to ignore one would be to do what the client has forbidden (RFC 9110,
// 13.1.1 and 13.1.4), or to store what he did not mean. And it refuses headers of
// which only the first value would be read.
func checkHeaders(header http.Header) error {
	if header.Get("Content-Encoding") != "identity" {
		if err := refuseHeaders(header, "is not heeded here, so nothing was done: send the body as it is", "Content-Encoding"); err != nil {
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
	return refuseHeaders(header, "is not heeded here, so nothing was done: leave it out", "If-Match", "If-Unmodified-Since")
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

// parseQuery refuses queries that readers could understand differently: ill-
// formed escapes, and parameters that are unknown or given twice.
func (x *exchange) parseQuery() error {
	if x.r.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(x.r.URL.RawQuery)
	if err != nil {
		return model.Invalid("query", "is not well-formed: escape with %%XX, and separate parameters with &")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch {
		case !slices.Contains(x.form.query, name):
			return model.Invalid(showName(name), "is not a parameter here; %s", known("parameters", x.form.query))
		case len(query[name]) > 1:
			return model.Invalid(name, "is given twice")
		case query[name][0] == "" && name != "prefix" && name != "cursor":
			return model.Invalid(name, "must not be empty")
		case slices.Contains(x.form.booleans, name) && query[name][0] != "true" && query[name][0] != "false":
			return model.Invalid(name, "must be true or false")
		}
	}
	x.query = query
	return nil
}

func known(what string, names []string) string {
	if len(names) == 0 {
		return "there are none"
	}
	return "the " + what + " are " + strings.Join(names, ", ")
}

// readBody reads the JSON body, checks it, and puts it back for huma.
func (x *exchange) readBody() error {
	body, err := x.receive()
	if err != nil {
		return err
	}
	if len(body) == 0 {
		if x.form.required {
			return model.Invalid("body", "must be a JSON object; %s", known("fields", x.form.fields))
		}
		x.r.Body = http.NoBody
		return nil
	}
	if given := x.r.Header.Get("Content-Type"); given != "" {
		if media, _, err := mime.ParseMediaType(given); err != nil || media != "application/json" {
			return model.Invalid("Content-Type", "must be application/json")
		}
	}
	if err := checkJSON(body); err != nil {
		return err
	}
	x.r.Header.Set("Content-Type", "application/json")
	x.r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// receive returns the body, which it reads once.
func (x *exchange) receive() ([]byte, error) {
	if !x.received {
		x.received = true
		x.body, x.bodyErr = x.readAll()
	}
	return x.body, x.bodyErr
}

// readAll reads the body within its limits of size and time.
func (x *exchange) readAll() ([]byte, error) {
	if x.r.Body == nil || x.r.Body == http.NoBody {
		return nil, nil
	}
	x.allow(x.gate.bodyTimeout)
	body, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, x.gate.maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, model.Invalid("body", "must have at most %d bytes", x.gate.maxBody)
	}
	if err != nil {
		return nil, x.unreadable(err)
	}
	x.bodyEnded = true
	return body, nil
}

// allow bounds how long the body may take from now on. net/http takes the
// deadline back at the body's end: it watches the connection from then on, and
// would take its passing for the client's going away.
func (x *exchange) allow(d time.Duration) {
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(d)) // a test's recorder has none
}

// unreadable says that a body ended before it was whole. The connection goes
// with it: the server would wait for the rest before it answers.
func (x *exchange) unreadable(err error) error {
	x.w.Header().Set("Connection", "close")
	return &model.Error{
		Code:    model.CodeValidation,
		Message: "body: could not be read to its end; send it whole, and as long as announced",
		Err:     err,
	}
}

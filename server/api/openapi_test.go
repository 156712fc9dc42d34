package api

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// description is the OpenAPI document as a client gets it.
type description struct{ doc *openapi3.T }

func loadDescription(tb testing.TB, baseURL string) *description {
	tb.Helper()
	res, err := http.Get(baseURL + Prefix + "/openapi.json")
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		tb.Fatalf("status %d, %v", res.StatusCode, err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		tb.Fatal(err)
	}
	return &description{doc: doc}
}

// find returns the documented operation that a request is for, nil when
// there is none. (The routers of kin-openapi do not let a parameter hold
// slashes, as keys of objects do.)
func (d *description) find(req *http.Request) *routers.Route {
	path, ok := strings.CutPrefix(req.URL.Path, Prefix)
	if !ok {
		return nil
	}
	for _, template := range d.doc.Paths.InMatchingOrder() {
		item := d.doc.Paths.Value(template)
		if op := item.GetOperation(req.Method); op != nil && matches(template, path) {
			return &routers.Route{Spec: d.doc, Path: template, PathItem: item, Method: req.Method, Operation: op}
		}
	}
	return nil
}

func matches(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	for i, segment := range want {
		if segment == "{key}" {
			return len(got) > i
		}
		if i >= len(got) || segment != got[i] && !strings.HasPrefix(segment, "{") {
			return false
		}
	}
	return len(want) == len(got)
}

// validate checks an answer against the document.
func (d *description) validate(tb testing.TB, req *http.Request, res *http.Response, text []byte) {
	tb.Helper()
	route := d.find(req)
	if route == nil {
		if res.StatusCode != http.StatusNotFound {
			tb.Errorf("%s %s is not documented, and answered %d", req.Method, req.URL.Path, res.StatusCode)
		}
		return
	}
	err := openapi3filter.ValidateResponse(tb.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route},
		Status:                 res.StatusCode, Header: res.Header, Body: io.NopCloser(bytes.NewReader(text)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		tb.Errorf("%s %s: the answer is not what the document says: %v\n%s", req.Method, req.URL.Path, err, text)
	}
}

func TestDescriptionIsValid(t *testing.T) {
	w := open(t)
	doc := w.doc.doc
	if err := doc.Validate(t.Context()); err != nil {
		t.Errorf("the document is not valid: %v", err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Version != "1.0.0" {
		t.Errorf("openapi %s, version %s", doc.OpenAPI, doc.Info.Version)
	}
}

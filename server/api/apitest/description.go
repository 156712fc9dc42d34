// Package apitest checks responses of the API against its own description in tests.
package apitest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// prefix begins the paths of the API.
const prefix = "/v1"

// Description is the OpenAPI 3.1 document that a client gets.
type Description struct {
	*openapi3.T
	Text []byte // as served
	// In30 is the OpenAPI 3.0 form.
	In30 *openapi3.T

	forms []*document
}

// document is a form of the description, ready to check responses. Appliances of
// a process share it.
type document struct {
	*openapi3.T
	templates []string // of paths, in the order in which they match
	schemas   *schemas // nil in OpenAPI 3.0
}

// Load fetches the description from the appliance at baseURL.
func Load(tb testing.TB, baseURL string) *Description {
	tb.Helper()
	in31, text := load(tb, baseURL, "/openapi.json")
	in30, _ := load(tb, baseURL, "/openapi-3.0.json")
	return &Description{T: in31.T, Text: text, In30: in30.T, forms: []*document{in31, in30}}
}

// shared is the description that Shared returns.
var shared struct {
	once sync.Once
	*Description
}

// Shared is Load for tests that check responses of many appliances, whose descriptions differ in nothing but the
// appliance's URL: the first one serves its description for all of the process. To write and read one takes longer than
// most tests.
func Shared(tb testing.TB, baseURL string) *Description {
	tb.Helper()
	shared.once.Do(func() { shared.Description = Load(tb, baseURL) })
	if shared.Description == nil {
		tb.Fatal("the test that was the first could not load the description")
	}
	return shared.Description
}

// parsed has the documents of this process: parsing one takes longer than most
// tests.
var parsed sync.Map // text without the appliance's URL → func() (*document, error)

func load(tb testing.TB, baseURL, path string) (*document, []byte) {
	tb.Helper()
	res, err := http.Get(baseURL + prefix + path)
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		tb.Fatalf("status %d, %v", res.StatusCode, err)
	}
	parse, _ := parsed.LoadOrStore(strings.ReplaceAll(string(text), baseURL, ""), sync.OnceValues(func() (*document, error) { return parse(text) }))
	doc, err := parse.(func() (*document, error))()
	if err != nil {
		tb.Fatal(err)
	}
	return doc, text
}

func parse(text []byte) (*document, error) {
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	d := &document{T: doc, templates: doc.Paths.InMatchingOrder()}
	if doc.IsOpenAPI31OrLater() {
		d.schemas, err = newSchemas(text)
	}
	return d, err
}

// find returns the documented operation for a request, or nil. (In kin-openapi's routers a parameter cannot contain
// slashes, as object keys do.)
func (d *document) find(req *http.Request) *routers.Route {
	path, ok := strings.CutPrefix(req.URL.Path, prefix)
	if !ok {
		return nil
	}
	for _, template := range d.templates {
		item := d.Paths.Value(template)
		if op := item.GetOperation(req.Method); op != nil && matches(template, path) {
			return &routers.Route{Spec: d.T, Path: template, PathItem: item, Method: req.Method, Operation: op}
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

// CheckAnswer checks a response against both documents.
func (d *Description) CheckAnswer(tb testing.TB, req *http.Request, res *http.Response, text []byte) {
	tb.Helper()
	for _, doc := range d.forms {
		doc.checkAnswer(tb, req, res, text)
	}
}

func (d *document) checkAnswer(tb testing.TB, req *http.Request, res *http.Response, text []byte) {
	tb.Helper()
	route := d.find(req)
	if route == nil {
		want := http.StatusNotFound
		if req.Method == http.MethodTrace || req.Method == http.MethodConnect {
			want = http.StatusMethodNotAllowed
		}
		if res.StatusCode != want {
			tb.Errorf("%s %s is not documented, and answered %d", req.Method, req.URL.Path, res.StatusCode)
		}
		return
	}
	if err := d.validate(tb.Context(), req, route, res, text); err != nil {
		tb.Errorf("%s %s: the answer is not what the document in OpenAPI %s says: %v\n%s", req.Method, req.URL.Path, d.OpenAPI, err, text)
	}
}

// validate checks the status, headers and body of a response.
func (d *document) validate(ctx context.Context, req *http.Request, route *routers.Route, res *http.Response, text []byte) error {
	schema, err := d.schemas.ofBody(route, res)
	if err != nil {
		return err
	}
	if schema != nil {
		body, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return err
		}
		if err := schema.Validate(body); err != nil {
			return err
		}
		route.Spec = &openapi3.T{OpenAPI: "3.0.3"} // in 3.1, kin-openapi would compile the schemas of all headers each time
	}
	return openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route},
		Status:                 res.StatusCode, Header: res.Header, Body: io.NopCloser(bytes.NewReader(text)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: schema != nil},
	})
}

// CheckRequest checks a request with the given body against the document, and returns its operation, or nil if it is
// not documented.
func (d *Description) CheckRequest(tb testing.TB, req *http.Request, body []byte) *openapi3.Operation {
	tb.Helper()
	route := d.forms[0].find(req)
	if route == nil {
		tb.Errorf("%s %s is not documented", req.Method, req.URL.Path)
		return nil
	}
	checked := req.Clone(tb.Context())
	checked.Body = io.NopCloser(bytes.NewReader(body))
	err := openapi3filter.ValidateRequest(tb.Context(), &openapi3filter.RequestValidationInput{
		Request: checked, Route: route, PathParams: pathParameters(route.Path, req.URL.Path),
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
			// An upload has no schema.
			ExcludeRequestBody: req.Header.Get("Content-Type") != "application/json",
		},
	})
	if err != nil {
		tb.Errorf("%s %s: the request is not what the document says: %v", req.Method, req.URL.Path, err)
	}
	return route.Operation
}

func pathParameters(template, path string) map[string]string {
	parameters := map[string]string{}
	got := strings.Split(strings.TrimPrefix(path, prefix), "/")
	for i, segment := range strings.Split(template, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			parameters[strings.TrimSuffix(name, "}")] = strings.Join(got[i:], "/")
			if name != "key}" {
				parameters[strings.TrimSuffix(name, "}")] = got[i]
			}
		}
	}
	return parameters
}

// Package apitest checks responses of the API against its own description in tests.
package apitest

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

// prefix begins the paths of the API.
const prefix = "/v1"

// Description is the OpenAPI 3.1 document that a client gets.
type Description struct {
	*openapi3.T
	Text []byte // as served
	// In30 is the OpenAPI 3.0 form.
	In30 *openapi3.T
}

// Load fetches the description from the appliance at baseURL.
func Load(tb testing.TB, baseURL string) *Description {
	tb.Helper()
	d := &Description{}
	d.T, d.Text = load(tb, baseURL+prefix+"/openapi.json")
	d.In30, _ = load(tb, baseURL+prefix+"/openapi-3.0.json")
	return d
}

func load(tb testing.TB, url string) (*openapi3.T, []byte) {
	tb.Helper()
	res, err := http.Get(url)
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
	return doc, text
}

// find returns the documented operation for a request, or nil. (In kin-openapi's routers a parameter cannot contain
// slashes, as object keys do.)
func find(doc *openapi3.T, req *http.Request) *routers.Route {
	path, ok := strings.CutPrefix(req.URL.Path, prefix)
	if !ok {
		return nil
	}
	for _, template := range doc.Paths.InMatchingOrder() {
		item := doc.Paths.Value(template)
		if op := item.GetOperation(req.Method); op != nil && matches(template, path) {
			return &routers.Route{Spec: doc, Path: template, PathItem: item, Method: req.Method, Operation: op}
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
	for _, doc := range []*openapi3.T{d.T, d.In30} {
		checkAnswer(tb, doc, req, res, text)
	}
}

func checkAnswer(tb testing.TB, doc *openapi3.T, req *http.Request, res *http.Response, text []byte) {
	tb.Helper()
	route := find(doc, req)
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
	err := openapi3filter.ValidateResponse(tb.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: req, Route: route},
		Status:                 res.StatusCode, Header: res.Header, Body: io.NopCloser(bytes.NewReader(text)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		tb.Errorf("%s %s: the answer is not what the document in OpenAPI %s says: %v\n%s", req.Method, req.URL.Path, doc.OpenAPI, err, text)
	}
}

// CheckRequest checks a request with the given body against the document, and returns its operation, or nil if it is
// not documented.
func (d *Description) CheckRequest(tb testing.TB, req *http.Request, body []byte) *openapi3.Operation {
	tb.Helper()
	route := find(d.T, req)
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

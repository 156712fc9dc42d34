package apitest

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// description describes one operation, in a version of OpenAPI.
const description = `{"openapi": %q, "info": {"title": "t", "version": "1", "description": "of http://%s"},
"paths": {"/things/{id}": {"get": {"operationId": "getThing", "responses": {
	"200": {"description": "it", "headers": {"X-Left": {"required": true, "schema": {"type": "integer"}}}, "content": {
		"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}, "text/plain": {"schema": {"type": "string"}}}},
	"404": {"$ref": "#/components/responses/NotFound"}}}}},
"components": {
	"responses": {"NotFound": {"description": "no", "content": {"application/json": {"schema": {"type": "object", "required": ["error"],
		"properties": {"error": {"type": "string"}}}}}}},
	"schemas": {
		"Thing": {"type": "object", "required": ["id", "at"], "properties": {
			"id": {"type": "string", "minLength": 2}, "at": {"$ref": "#/components/schemas/Time"}, "kind": {"enum": ["a", "b"]}}},
		"Time": {"type": "string", "format": "date-time"}}}}`

// described serves the description in both versions.
func described(t *testing.T) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version := map[string]string{"/v1/openapi.json": "3.1.0", "/v1/openapi-3.0.json": "3.0.3"}[r.URL.Path]
		fmt.Fprintf(w, description, version, r.Host)
	}))
	t.Cleanup(server.Close)
	return server
}

// faults counts the errors that a check reports.
type faults struct {
	testing.TB
	said []string
}

func (f *faults) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func TestCheckAnswer(t *testing.T) {
	d := Load(t, described(t).URL)
	const right = `{"id": "ab", "at": "2026-01-31T12:00:00Z", "kind": "a"}`
	for what, c := range map[string]struct {
		path, method, text, mime, left string
		status, faults                 int // in both documents
	}{
		"as described":          {text: right},
		"an undescribed field":  {text: `{"id": "ab", "at": "2026-01-31T12:00:00Z", "new": 1}`},
		"text":                  {text: "it", mime: "text/plain"},
		"an error":              {text: `{"error": "no"}`, status: 404},
		"a missing field":       {text: `{"id": "ab"}`, faults: 2},
		"a wrong type":          {text: `{"id": 1, "at": "2026-01-31T12:00:00Z"}`, faults: 2},
		"too short":             {text: `{"id": "a", "at": "2026-01-31T12:00:00Z"}`, faults: 2},
		"no time":               {text: `{"id": "ab", "at": "2026-13-31T12:00:00Z"}`, faults: 2},
		"no value of the enum":  {text: `{"id": "ab", "at": "2026-01-31T12:00:00Z", "kind": "c"}`, faults: 2},
		"null":                  {text: "null", faults: 2},
		"no JSON":               {text: `{"id": "ab"`, faults: 2},
		"more than one value":   {text: right + right, faults: 1}, // that of 3.0 reads the first
		"another error":         {text: `{"error": 1}`, status: 404, faults: 2},
		"an undescribed type":   {text: "id,at", mime: "text/csv", faults: 2},
		"an undescribed status": {text: right, status: 409, faults: 2},
		"a missing header":      {text: right, left: "-", faults: 2},
		"a wrong header":        {text: right, left: "many", faults: 2},
		"an undescribed method": {method: "DELETE", text: right, faults: 2},
		"an undescribed path":   {path: "/v1/none", text: `{"error": "no"}`, status: 404},
	} {
		t.Run(what, func(t *testing.T) {
			left := cmp.Or(c.left, "3")
			res := &http.Response{StatusCode: cmp.Or(c.status, 200), Header: http.Header{"Content-Type": {cmp.Or(c.mime, "application/json")}}}
			if left != "-" {
				res.Header.Set("X-Left", left)
			}
			got := &faults{TB: t}
			d.CheckAnswer(got, httptest.NewRequest(cmp.Or(c.method, "GET"), cmp.Or(c.path, "/v1/things/1"), nil), res, []byte(c.text))
			if len(got.said) != c.faults {
				t.Errorf("%d faults, not %d: %s", len(got.said), c.faults, strings.Join(got.said, "\n"))
			}
		})
	}
}

// Appliances with the same description share its documents; one with another has its own.
func TestLoadShares(t *testing.T) {
	one, same := Load(t, described(t).URL), Load(t, described(t).URL)
	if one.T != same.T || one.In30 != same.In30 || one.T == one.In30 {
		t.Error("the same description was parsed again")
	}
	if string(one.Text) == string(same.Text) {
		t.Error("the text is not as served")
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, strings.Replace(description, "getThing", "getOther", 1), "3.1.0", r.Host)
	}))
	defer other.Close()
	if Load(t, other.URL).T == one.T {
		t.Error("another description was taken for the same")
	}
}

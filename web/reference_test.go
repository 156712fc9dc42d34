package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestReference checks that every operation of the API, with its parameters and
// fields, is in the reference, without signing in.
func TestReference(t *testing.T) {
	t.Parallel()
	c := openConsole(t, 0)
	c.client.Jar = nil // no session
	var doc openAPI
	text, err := c.description()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	index := c.get(t, "/docs")
	areas := map[string]string{}
	for path, item := range doc.Paths {
		for method, op := range item {
			if len(op.Tags) != 1 {
				t.Errorf("%s %s is in the areas %v", method, path, op.Tags)
				continue
			}
			area := slug(op.Tags[0])
			if areas[area] == "" {
				areas[area] = c.get(t, "/docs/"+area)
			}
			if link := `href="/docs/` + area + "#" + op.ID + `"`; !strings.Contains(index, link) {
				t.Errorf("the index has no %s", link)
			}
			_, section, found := strings.Cut(areas[area], `<section id="`+op.ID+`">`)
			if !found {
				t.Errorf("%s %s has no section", method, path)
			}
			section, _, _ = strings.Cut(section, "</section>")
			for _, want := range append(names(&doc, op), strings.ToUpper(method), "/v1"+path) {
				if !strings.Contains(section, "<code>"+want+"</code>") && !strings.Contains(section, `<code class="verb">`+want+"</code>") {
					t.Errorf("the section of %s %s lacks %s", method, path, want)
				}
			}
		}
	}
	if len(areas) < 5 {
		t.Errorf("%d areas", len(areas))
	}
	answer, err := c.client.Get(c.server.URL + "/docs/nothing")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("an area there is not: %s", answer.Status)
	}
}

// names returns the top-level fields of an operation's request and response.
func names(doc *openAPI, op apiOperation) (all []string) {
	for _, p := range op.Parameters {
		all = append(all, p.Name)
	}
	for _, body := range []*apiSchema{op.Body.json(), op.Answers["200"].json()} {
		if body == nil {
			continue
		}
		target, _, _ := doc.resolve(body)
		if data := target.Properties["data"]; data != nil {
			target, _, _ = doc.resolve(data)
		}
		if target.Items != nil {
			target, _, _ = doc.resolve(target.Items)
		}
		for name := range target.Properties {
			all = append(all, name)
		}
	}
	return all
}

// TestReferenceOfWhatHoldsItself checks that a recursive schema terminates.
func TestReferenceOfWhatHoldsItself(t *testing.T) {
	t.Parallel()
	r, err := newReference([]byte(`{"paths": {"/trees": {"get": {"operationId": "listTrees", "summary": "List trees", "tags": ["Trees"], "responses": {"200": {"content": {"application/json":
		{"schema": {"properties": {"data": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}}}}}}}}}},
		"components": {"schemas": {"Tree": {"type": "object", "properties": {"name": {"type": ["string", "null"]},
			"branches": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}}}}}}`), "http://127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	op := r[0].Operations[0]
	if op.Title != "List trees" || len(op.Answer) != 2 || op.Answer[0].Type != "array of object" || op.Answer[1].Type != "string or null" {
		t.Errorf("%+v", op)
	}
}

package api

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// node is an object of a description in JSON.
type node = map[string]any

// descriptions returns both forms of the description, as a client gets them.
func descriptions(t *testing.T, w *world) map[string]node {
	t.Helper()
	docs := map[string]node{}
	for _, name := range []string{"openapi.json", "openapi-3.0.json"} {
		res, err := http.Get(w.server.URL + Prefix + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d, %v", name, res.StatusCode, err)
		}
		var doc node
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		docs[name] = doc
	}
	return docs
}

// at returns the value at a path of names, or nil.
func at(tree any, path ...string) any {
	for _, name := range path {
		object, _ := tree.(node)
		tree = object[name]
	}
	return tree
}

func objectsAt(tree any, path ...string) map[string]node {
	found := map[string]node{}
	members, _ := at(tree, path...).(node)
	for name, value := range members {
		if object, ok := value.(node); ok {
			found[name] = object
		}
	}
	return found
}

// TestGeneratorsCanName checks that the description meets the needs of generators: they make a type of each
// component, and of each record or enumeration without a name a type named after its position. No two of these names
// may be equal in any language's spelling.
func TestGeneratorsCanName(t *testing.T) {
	for name, doc := range descriptions(t, open(t)) {
		t.Run(name, func(t *testing.T) {
			taken, ids := map[string]string{}, map[string]bool{}
			take := func(name, what string) {
				if other, is := taken[identifier(name)]; is {
					t.Errorf("%s and %s would both be %s in generated code", other, what, name)
				}
				taken[identifier(name)] = what
			}
			for _, kind := range []string{"schemas", "responses", "parameters", "requestBodies", "headers"} {
				for _, name := range slices.Sorted(maps.Keys(objectsAt(doc, "components", kind))) {
					take(name, kind+"/"+name)
				}
			}
			for name, schema := range objectsAt(doc, "components", "schemas") {
				for _, field := range slices.Sorted(maps.Keys(objectsAt(schema, "properties"))) {
					if identifier(field) == identifier(name) {
						t.Errorf("%s has a field of its own name", name)
					}
					checkInline(t, name+"."+field, objectsAt(schema, "properties")[field], func() { take(name+"_"+field, name+"."+field) })
				}
			}
			for path, item := range objectsAt(doc, "paths") {
				for method, op := range objectsAt(item) {
					checkTyped(t, strings.ToUpper(method)+" "+path, doc, op)
					id, _ := op["operationId"].(string)
					if ids[strings.ToLower(id)] || id == "" {
						t.Errorf("%s %s: operationId %q is missing or taken", method, path, id)
					}
					ids[strings.ToLower(id)] = true
					for _, suffix := range []string{"Params", "Response", "Request", "JSONRequestBody", "Body"} {
						take(id+suffix, "the "+suffix+" of "+method+" "+path)
					}
				}
			}
		})
	}
}

// checkInline reports records and enumerations without a name in a schema. For a map, which no component can be,
// name is called.
func checkInline(t *testing.T, what string, schema node, name func()) {
	t.Helper()
	if schema["$ref"] != nil {
		return
	}
	if schema["enum"] != nil || schema["properties"] != nil || schema["oneOf"] != nil && !strings.HasSuffix(what, "RequestedRestoreAnswer.data") {
		t.Errorf("%s is without a name: make it a component, an enumeration by a line of enumerations()", what)
	}
	if schema["type"] == "object" {
		name()
	}
	for _, part := range []string{"items", "additionalProperties"} {
		if inner, ok := schema[part].(node); ok {
			checkInline(t, what+" "+part, inner, name)
		}
	}
	for _, part := range []string{"anyOf", "allOf", "oneOf"} {
		parts, _ := schema[part].([]any)
		for _, inner := range parts {
			if inner, ok := inner.(node); ok {
				checkInline(t, what+" "+part, inner, name)
			}
		}
	}
}

// checkTyped checks that an operation has typed parameters, bodies and responses.
func checkTyped(t *testing.T, what string, doc, op node) {
	t.Helper()
	parameters, _ := op["parameters"].([]any)
	for _, p := range parameters {
		schema, _ := at(p, "schema").(node)
		checkInline(t, fmt.Sprintf("%s: %v", what, at(p, "name")), schema, func() {})
		if schema["type"] == nil && schema["$ref"] == nil && schema["allOf"] == nil {
			t.Errorf("%s: %v has no type", what, at(p, "name"))
		}
	}
	for media, body := range objectsAt(op, "requestBody", "content") {
		schema, _ := body["schema"].(node)
		checkInline(t, what+" "+media, schema, func() { t.Errorf("%s %s: its body is without a name", what, media) })
		if strings.Contains(media, "*") {
			t.Errorf("%s: generators know no media type %s", what, media)
		}
	}
	content := at(op, "responses", "200", "content").(map[string]any)
	stream := content[eventStream] != nil || content[auditLines] != nil // which is a text
	if !stream && at(op, "responses", "200", "content", "application/json", "schema", "$ref") == nil {
		t.Errorf("%s: its answer has no name", what)
	}
	for status, response := range objectsAt(op, "responses") {
		if status == "200" {
			continue
		}
		ref, _ := response["$ref"].(string)
		component := at(doc, "components", "responses", ref[strings.LastIndex(ref, "/")+1:])
		if at(component, "content", "application/json", "schema", "$ref") != schemaPrefix+"Failure" {
			t.Errorf("%s: %s is not one of the errors in components", what, status)
		}
	}
}

// TestDescription30 compares the two forms of the description.
func TestDescription30(t *testing.T) {
	w := open(t)
	docs := descriptions(t, w)
	v31, v30 := docs["openapi.json"], docs["openapi-3.0.json"]
	if v30["openapi"] != "3.0.3" {
		t.Errorf("openapi %v", v30["openapi"])
	}
	for _, part := range [][]string{{"paths"}, {"components", "schemas"}, {"components", "responses"}} {
		got, want := slices.Sorted(maps.Keys(objectsAt(v30, part...))), slices.Sorted(maps.Keys(objectsAt(v31, part...)))
		if !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%v: %v, want %v", part, got, want)
		}
	}
	if err := w.doc.In30.Validate(t.Context()); err != nil {
		t.Errorf("the document is not valid: %v", err)
	}
}

package api

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// documents returns the description for clients in OpenAPI 3.1, and in 3.0 for generators that do not support 3.1.
// Both are equivalent, as far as 3.0 allows. Each is written when it is first asked for, because writing both takes most
// of the time in which the API starts.
func documents(description *huma.OpenAPI) (v31, v30 func() ([]byte, error)) {
	v31 = sync.OnceValues(func() ([]byte, error) { return rewrite(description.MarshalJSON, nullableReference) })
	v30 = sync.OnceValues(func() ([]byte, error) {
		return rewrite(description.Downgrade, references30(description.Components.Schemas), keywords30)
	})
	return v31, v30
}

// rewrite applies the changes to every object of a document, innermost first.
func rewrite(source func() ([]byte, error), changes ...func(map[string]any)) ([]byte, error) {
	text, err := source()
	if err != nil {
		return nil, fmt.Errorf("write the OpenAPI document: %w", err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	eachObject(tree, func(object map[string]any) {
		for _, change := range changes {
			change(object)
		}
	})
	return json.Marshal(tree)
}

func eachObject(tree any, change func(map[string]any)) {
	switch value := tree.(type) {
	case map[string]any:
		for _, inner := range value {
			eachObject(inner, change)
		}
		change(value)
	case []any:
		for _, inner := range value {
			eachObject(inner, change)
		}
	}
}

// nullableReference writes a nullable reference.
func nullableReference(object map[string]any) {
	if object[nullableKey] == nil {
		return
	}
	object["anyOf"] = []any{map[string]any{"$ref": object["$ref"]}, map[string]any{"type": "null"}}
	delete(object, "$ref")
	delete(object, nullableKey)
}

// references30 writes references for OpenAPI 3.0, which has no type null and allows no keyword beside a reference.
func references30(schemas huma.Registry) func(map[string]any) {
	return func(object map[string]any) {
		ref, ok := object["$ref"].(string)
		if !ok || len(object) == 1 {
			return
		}
		object["allOf"] = []any{map[string]any{"$ref": ref}}
		if object[nullableKey] != nil {
			object["type"], object["nullable"] = schemas.SchemaFromRef(ref).Type, true
		}
		delete(object, "$ref")
		delete(object, nullableKey)
	}
}

// keywords30 removes or replaces the keywords that OpenAPI 3.0 does not support. It cannot express which fields go
// together.
func keywords30(object map[string]any) {
	if _, ok := object[securityScheme].([]any); ok {
		object[securityScheme] = []any{} // in 3.0 only OAuth has scopes
	}
	for _, keyword := range []string{"if", "then", "else", "dependentSchemas", "contentMediaType"} {
		delete(object, keyword)
	}
}

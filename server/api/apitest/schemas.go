package apitest

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/routers"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas has the schemas of an OpenAPI 3.1 document, which are JSON Schema
// 2020-12. Each is compiled once: kin-openapi compiles one for every value.
type schemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
}

// place is where the compiler has the document.
const place = "file:///openapi.json"

func newSchemas(text []byte) (*schemas, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	s := &schemas{compiler: jsonschema.NewCompiler()}
	s.compiler.AssertFormat()
	return s, s.compiler.AddResource(place, doc)
}

// ofBody returns the schema of a response in JSON. It is nil if the response has
// another type or is not documented, and if there are no schemas.
func (s *schemas) ofBody(route *routers.Route, res *http.Response) (*jsonschema.Schema, error) {
	const mime = "application/json"
	if s == nil || res.Header.Get("Content-Type") != mime || route.Method == http.MethodHead {
		return nil, nil
	}
	status := strconv.Itoa(res.StatusCode)
	response := route.Operation.Responses.Value(status)
	if response == nil || response.Value.Content[mime] == nil || response.Value.Content[mime].Schema == nil {
		return nil, nil
	}
	pointer := response.Ref
	if pointer == "" {
		pointer = "#" + strings.Join([]string{"", "paths", escape(route.Path), strings.ToLower(route.Method), "responses", status}, "/")
	}
	return s.compile(pointer + "/content/" + escape(mime) + "/schema")
}

// compile returns the schema at a JSON pointer.
func (s *schemas) compile(pointer string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compiler.Compile(place + pointer)
}

// escape escapes a name for a JSON pointer in a URL.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(name)
}

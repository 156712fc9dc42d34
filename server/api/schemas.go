package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// schemaPrefix begins references to schemas in the description.
const schemaPrefix = "#/components/schemas/"

// nullableKey marks a nullable reference. huma supports nullable scalars only; nullableReference writes the mark as
// JSON Schema.
const nullableKey = "x-nullable"

// schemas is the description's registry of schemas. Unlike huma's own it makes enumerations components, marks
// nullable references, and rejects names that generators would confuse.
type schemas struct {
	components map[string]*huma.Schema
	types      map[string]reflect.Type
	// identifiers maps each identifier, as a generator would make it, to its name; see identifier.
	identifiers  map[string]string
	enumerations map[reflect.Type]enumeration
	constraints  map[reflect.Type]func(*huma.Schema)
}

func newSchemas() *schemas {
	s := &schemas{
		components: map[string]*huma.Schema{}, types: map[string]reflect.Type{},
		identifiers: map[string]string{}, enumerations: map[reflect.Type]enumeration{},
		constraints: constraints(),
	}
	for _, e := range enumerations() {
		s.enumerations[e.of] = e
	}
	return s
}

// Schema implements huma.Registry.
func (s *schemas) Schema(t reflect.Type, allowRef bool, hint string) *huma.Schema {
	of, pointer := t, t.Kind() == reflect.Pointer
	if pointer {
		of = t.Elem()
	}
	if field, ok := reflect.New(of).Elem().Interface().(interface{ Of() reflect.Type }); ok {
		return s.resettable(field.Of())
	}
	enum, isEnum := s.enumerations[of]
	switch {
	case isEnum:
		s.add(enum.name, of, enum.schema)
		return s.refer(enum.name, pointer)
	case of.Kind() == reflect.Struct && of != reflect.TypeFor[time.Time]() && !providesSchema(of):
		name := schemaName(of, hint)
		s.add(name, of, func() *huma.Schema { return huma.SchemaFromType(s, of) })
		if !allowRef {
			return s.components[name]
		}
		return s.refer(name, pointer)
	case of.Kind() == reflect.Slice:
		return huma.SchemaFromType(s, of)
	}
	schema := huma.SchemaFromType(s, t)
	schema.Nullable = schema.Nullable || pointer && schema.Type == huma.TypeString
	return schema
}

// resettable returns the schema of a field of a change that can be null.
func (s *schemas) resettable(of reflect.Type) *huma.Schema {
	schema := s.Schema(reflect.PointerTo(of), true, "")
	schema.Nullable = schema.Ref == ""
	return schema
}

func providesSchema(t reflect.Type) bool {
	provider := reflect.TypeFor[huma.SchemaProvider]()
	return t.Implements(provider) || reflect.PointerTo(t).Implements(provider)
}

// refer returns a reference to a component.
func (s *schemas) refer(name string, nullable bool) *huma.Schema {
	ref := &huma.Schema{Ref: schemaPrefix + name}
	if nullable {
		ref.Extensions = map[string]any{nullableKey: true}
	}
	return ref
}

// add adds the component name of the type t, once. Two types that would have one name in generated code are a
// programming error and cause a panic at start-up.
func (s *schemas) add(name string, t reflect.Type, schema func() *huma.Schema) {
	if s.types[name] == t {
		return
	}
	id := identifier(name)
	if other, taken := s.identifiers[id]; taken {
		panic(fmt.Sprintf("api: the schemas %s and %s would have one name in generated code", name, other))
	}
	s.types[name], s.identifiers[id] = t, name
	s.components[name] = &huma.Schema{} // for recursive types
	made := schema()
	if constrain, ok := s.constraints[t]; ok {
		constrain(made)
	}
	s.components[name] = made
}

// identifier returns a name without case and separators: generators may turn names that differ only in those into
// one.
func identifier(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(name))
}

// SchemaFromRef implements huma.Registry.
func (s *schemas) SchemaFromRef(ref string) *huma.Schema {
	return s.components[strings.TrimPrefix(ref, schemaPrefix)]
}

// TypeFromRef implements huma.Registry.
func (s *schemas) TypeFromRef(ref string) reflect.Type {
	return s.types[strings.TrimPrefix(ref, schemaPrefix)]
}

// Map implements huma.Registry.
func (s *schemas) Map() map[string]*huma.Schema { return s.components }

// RegisterTypeAlias implements huma.Registry; the API has none.
func (s *schemas) RegisterTypeAlias(reflect.Type, reflect.Type) {}

// MarshalJSON implements json.Marshaler.
func (s *schemas) MarshalJSON() ([]byte, error) { return json.Marshal(s.components) }

// schemaName names envelopes after their content: Envelope[Bucket, Meta] becomes BucketAnswer, Envelope[[]Bucket,
// ListMeta] BucketList.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for _, known := range []struct{ before, after, suffix string }{
		{"EnvelopeList", "ListMeta", "List"},
		{"EnvelopeList", "LogMeta", "Log"},
		{"EnvelopeList", "FolderMeta", "List"},
		{"Envelope", "Meta", "Answer"},
	} {
		if record, ok := between(name, known.before, known.after); ok {
			return plainName(record) + known.suffix
		}
	}
	return plainName(name)
}

// plainName renames types that generators could not use: a reserved word, the root of a class hierarchy, and a
// record with a field of its own name.
func plainName(name string) string {
	switch name {
	case "Import":
		return "DatabaseImport"
	case "Limits":
		return "AccountLimits"
	case "Object":
		return "StoredObject"
	default:
		return name
	}
}

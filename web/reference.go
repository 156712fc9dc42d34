package web

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/engine/model"
)

// reference is the API reference, by area.
type reference []referenceArea

type referenceArea struct {
	Name, Slug string
	Operations []referenceOperation
}

type referenceOperation struct {
	ID, Title, Method, Path, Description string
	Parameters, Body, Answer             []referenceField
	Example                              string
}

// referenceField is a parameter, or a field of a body by its path: "a.b", and
// "a[].b" if a is an array.
type referenceField struct {
	Name, Type, In, Text string
	Required             bool
}

// areaOrder is the reading order of the areas; others come last.
var areaOrder = []string{"Databases", "Branches", "Roles", "Network & security", "Settings & extensions", "Insight", "Backups", "Recovery", "Imports", "Storage", "Account", "Agent", "Device"}

var methodOrder = []string{"get", "post", "put", "patch", "delete"}

// newReference builds the reference from the API's OpenAPI document.
func newReference(description []byte, baseURL string) (reference, error) {
	var doc openAPI
	if err := json.Unmarshal(description, &doc); err != nil {
		return nil, fmt.Errorf("read the API's description: %w", err)
	}
	areas := map[string]*referenceArea{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range methodOrder {
			op, ok := doc.Paths[path][method]
			if !ok || len(op.Tags) == 0 {
				continue
			}
			name := op.Tags[0]
			if areas[name] == nil {
				areas[name] = &referenceArea{Name: name, Slug: slug(name)}
			}
			areas[name].Operations = append(areas[name].Operations, doc.reference(method, path, op, baseURL))
		}
	}
	var all reference
	for _, name := range append(slices.Clone(areaOrder), slices.Sorted(maps.Keys(areas))...) {
		if areas[name] != nil {
			all = append(all, *areas[name])
			delete(areas, name)
		}
	}
	return all, nil
}

func slug(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' }), "-")
}

func (d *openAPI) reference(method, path string, op apiOperation, baseURL string) referenceOperation {
	r := referenceOperation{
		ID: op.ID, Title: op.Summary, Method: strings.ToUpper(method), Path: "/v1" + path,
		Description: strings.ReplaceAll(op.Description, "`", ""),
	}
	for _, p := range op.Parameters {
		r.Parameters = append(r.Parameters, referenceField{
			Name: p.Name, Type: d.typeOf(p.Schema), In: p.In, Required: p.Required, Text: about(p.Description, d.rules(p.Schema)),
		})
	}
	if body := op.Body.json(); body != nil {
		r.Body = d.fields(body, "", nil)
	}
	if answer := op.Answers["200"].json(); answer != nil {
		envelope, _, _ := d.resolve(answer)
		if data := envelope.Properties["data"]; data != nil {
			r.Answer = d.fields(data, "", nil)
			for i := range r.Answer {
				r.Answer[i].Required = false // it is always present
			}
		}
	}
	r.Example = example(r, baseURL, op.needsKey())
	return r
}

// fields lists the fields of a schema and of nested schemas. above holds the
// enclosing schemas, to stop at a recursive one.
func (d *openAPI) fields(s *apiSchema, prefix string, above []string) (all []referenceField) {
	target, name, _ := d.resolve(s)
	if slices.Contains(above, name) && name != "" {
		return nil
	}
	if target.Items != nil {
		if prefix != "" {
			prefix = strings.TrimSuffix(prefix, ".") + "[]."
		}
		return d.fields(target.Items, prefix, above)
	}
	for _, field := range slices.Sorted(maps.Keys(target.Properties)) {
		property := target.Properties[field]
		all = append(all, referenceField{
			Name: prefix + field, Type: d.typeOf(property), Required: slices.Contains(target.Required, field),
			Text: about(property.Description, d.rules(property)),
		})
		all = append(all, d.fields(property, prefix+field+".", append(above, name))...)
	}
	return all
}

func about(description, rules string) string {
	return strings.TrimSpace(strings.Join(slices.DeleteFunc([]string{description, upperFirst(rules)}, func(s string) bool { return s == "" }), " "))
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// example returns the request as a curl command, with only the required fields.
func example(r referenceOperation, baseURL string, withKey bool) string {
	method := ""
	if r.Method != "GET" {
		method = "-X " + r.Method + " "
	}
	lines := []string{fmt.Sprintf(`curl %s"%s%s"`, method, baseURL, strings.NewReplacer("{", "$", "}", "").Replace(r.Path))}
	if withKey {
		lines = append(lines, `-H "Authorization: Bearer $HOLDFAST_API_KEY"`)
	}
	var fields []string
	for _, f := range r.Body {
		if f.Required && !strings.Contains(f.Name, ".") {
			fields = append(fields, fmt.Sprintf("%q: …", f.Name))
		}
	}
	if len(r.Body) > 0 {
		lines = append(lines, "-H 'Content-Type: application/json' -d '{"+strings.Join(fields, ", ")+"}'")
	}
	return strings.Join(lines, " \\\n  ")
}

// referenceIndex handles /docs: the list of areas.
func (req *request) referenceIndex() (answer, error) {
	docs, err := req.docs()
	return answer{page: "reference.html", title: "API reference", data: docs}, err
}

// referenceArea handles /docs/{area}: all operations of an area.
func (req *request) referenceArea() (answer, error) {
	docs, err := req.docs()
	if err != nil {
		return answer{}, err
	}
	for _, area := range docs {
		if area.Slug == req.r.PathValue("area") {
			return answer{page: "reference_area.html", title: area.Name, data: area}, nil
		}
	}
	return answer{}, model.Errorf(model.CodeNotFound, "the API has no such area; /docs lists what there is")
}

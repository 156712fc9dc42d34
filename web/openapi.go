package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// openAPI is the part of the API's OpenAPI 3.1 document that the reference
// shows.
type openAPI struct {
	Paths      map[string]map[string]apiOperation `json:"paths"`
	Components struct {
		Schemas map[string]*apiSchema `json:"schemas"`
	} `json:"components"`
}

type apiOperation struct {
	ID          string                 `json:"operationId"`
	Summary     string                 `json:"summary"`
	Description string                 `json:"description"`
	Tags        []string               `json:"tags"`
	Parameters  []apiParameter         `json:"parameters"`
	Body        *apiContent            `json:"requestBody"`
	Answers     map[string]*apiContent `json:"responses"`
	Security    []map[string][]string  `json:"security"`
}

// needsKey reports whether the operation requires a key.
func (op apiOperation) needsKey() bool { return len(op.Security) > 0 }

type apiParameter struct {
	Name        string     `json:"name"`
	In          string     `json:"in"`
	Required    bool       `json:"required"`
	Description string     `json:"description"`
	Schema      *apiSchema `json:"schema"`
}

// apiContent is a body by media type.
type apiContent struct {
	Content map[string]struct {
		Schema *apiSchema `json:"schema"`
	} `json:"content"`
}

func (c *apiContent) json() *apiSchema {
	if c == nil {
		return nil
	}
	return c.Content["application/json"].Schema
}

type apiSchema struct {
	Ref         string                `json:"$ref"`
	Type        apiTypes              `json:"type"`
	Format      string                `json:"format"`
	Description string                `json:"description"`
	Enum        []any                 `json:"enum"`
	Default     any                   `json:"default"`
	Minimum     *float64              `json:"minimum"`
	Maximum     *float64              `json:"maximum"`
	MinLength   *int                  `json:"minLength"`
	MaxLength   *int                  `json:"maxLength"`
	MaxItems    *int                  `json:"maxItems"`
	Items       *apiSchema            `json:"items"`
	Properties  map[string]*apiSchema `json:"properties"`
	Required    []string              `json:"required"`
	AnyOf       []*apiSchema          `json:"anyOf"`
}

// apiTypes is a schema's type or list of types.
type apiTypes []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *apiTypes) UnmarshalJSON(text []byte) error {
	var one string
	if err := json.Unmarshal(text, &one); err == nil {
		*t = apiTypes{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(t))
}

// resolve returns the schema that a reference names, and whether it allows null.
func (d *openAPI) resolve(s *apiSchema) (_ *apiSchema, name string, null bool) {
	null = slices.Contains(s.Type, "null")
	for _, one := range s.AnyOf {
		if slices.Equal(one.Type, apiTypes{"null"}) {
			null = true
		} else if s.Ref == "" {
			s = one
		}
	}
	if s.Ref == "" {
		return s, "", null
	}
	name = s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	if target := d.Components.Schemas[name]; target != nil {
		return target, name, null
	}
	return s, name, null
}

// typeOf describes the type of a value.
func (d *openAPI) typeOf(s *apiSchema) string {
	target, _, null := d.resolve(s)
	text := "any"
	for _, t := range target.Type {
		switch {
		case t == "null":
			null = true
		case t == "array" && target.Items != nil:
			text = "array of " + d.typeOf(target.Items)
		case target.Format == "date-time":
			text = "time (RFC 3339)"
		default:
			text = t
		}
	}
	if null {
		text += " or null"
	}
	return text
}

// rules describes the constraints on a value.
func (d *openAPI) rules(s *apiSchema) string {
	target, _, _ := d.resolve(s)
	if target.Items != nil {
		rules := d.rules(target.Items)
		if target.MaxItems != nil {
			rules = strings.TrimSuffix(fmt.Sprintf("at most %d entries; %s", *target.MaxItems, rules), "; ")
		}
		return rules
	}
	var rules []string
	var values []string
	for _, v := range target.Enum {
		if v != nil {
			values = append(values, fmt.Sprint(v))
		}
	}
	if len(values) > 0 {
		rules = append(rules, "one of "+strings.Join(values, ", "))
	}
	if target.Minimum != nil {
		rules = append(rules, fmt.Sprintf("at least %v", *target.Minimum))
	}
	if target.Maximum != nil {
		rules = append(rules, fmt.Sprintf("at most %.0f", *target.Maximum))
	}
	if target.MinLength != nil && *target.MinLength > 1 {
		rules = append(rules, fmt.Sprintf("at least %d characters", *target.MinLength))
	}
	if target.MaxLength != nil {
		rules = append(rules, fmt.Sprintf("at most %d characters", *target.MaxLength))
	}
	if target.Default != nil {
		rules = append(rules, fmt.Sprintf("default %v", target.Default))
	}
	return strings.Join(rules, "; ")
}

package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"holdfast/engine/advice"
	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/engine/password"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
)

// Valid values of the kinds whose rules the description can express only in words.
const (
	goodPassword = "lavender-Quartz-71-bridge"
	goodSource   = "postgres://u:" + goodPassword + "@example.com/db"
)

// words are the rules that the description can express only in words, by field.
var words = map[string]func(text string) bool{
	"url":         func(text string) bool { return model.ValidateWebhookURL("", text, false) == nil },
	"email":       func(text string) bool { _, err := model.NormalizeEmail("", text); return err == nil },
	"client_name": func(text string) bool { return model.ValidateClientName("", text) == nil },
	"password": func(text string) bool {
		return cmp.Or(password.ForDatabase("", model.NewSecret(text), "name", model.DefaultOwner), postgres.CheckPassword("", model.NewSecret(text))) == nil
	},
	"statement": func(text string) bool { return len(text) <= advice.MaxExplained && !strings.Contains(text, "\x00") },
	"statement_id": func(text string) bool {
		_, err := strconv.ParseInt(text, 10, 64)
		return err == nil
	},
	"version": func(text string) bool {
		major, err := strconv.Atoi(text)
		return err == nil && major >= binaries.OldestMajor
	},
	"source_url": func(text string) bool { return text == goodSource },
	"cursor":     func(text string) bool { return text == "" },
	"key":        func(text string) bool { return model.ValidateObjectKey("", text) == nil },
	"key_prefix": func(text string) bool { return model.ValidateObjectKey("", text+"x") == nil },
	"source_key": func(text string) bool { return model.ValidateObjectKey("", text) == nil },
	"content_type": func(text string) bool {
		_, _, err := mediaType(text)
		return err == nil
	},
	"cache_control":       func(text string) bool { return model.ValidateStoredHeader("", text) == nil },
	"content_disposition": func(text string) bool { return model.ValidateStoredHeader("", text) == nil },
	"Cache-Control":       func(text string) bool { return model.ValidateStoredHeader("", text) == nil },
	"Content-Disposition": func(text string) bool { return model.ValidateStoredHeader("", text) == nil },
	"X-Object-Tags": func(text string) bool {
		_, err := model.ParseObjectTags("", text)
		return err == nil
	},
}

// edgeTexts are edge cases of the rules of some field.
var edgeTexts = []string{
	"", "a", "Ab_9-", "1a", "_a", "-a", "a-", "a b", "a\nb", "é", "postgres", "POSTGRES", "postgresql", "template", "Template1", "public", "none",
	"nonesuch", "pg_a", "pga", "holdfast", "a_readonly", "a_readonlyx", "abc", "ab", "a..b", "a.-b", "a-.b", "a--b", "a.b", ".ab", "ab.", "xn--a",
	"192.168.0.1", "999.1.1.1", "1.2.3", "abc-s3alias", "abc--ol-s3", "abc.mrap", "sthree-a", "amzn-s3-demo-a", "0/0", "00/000", "0/1", "ffffffff/FFFFFFFF",
	"fffffffff/0", "0/", "10.0.0.0/8", "10.0.0.1/8", "10.0.0.1", "::1", "::1/128", "fe80::1%eth0", "10.0.0.0/33", "2030-01-31T12:00:00Z",
	"2030-01-31T12:00:00.123456789+02:00", "2030-01-31", "2030-13-31T12:00:00Z", "in_place", "new", "read_only", "custom", "success", "true",
	"*", `"x"`, "AAAAAA==", "AAAAAAA=", strings.Repeat("A", 43) + "=", strings.Repeat("A", 42) + "==", goodPassword, goodSource,
}

// TestDescriptionAndServerAgree sends requests at the edges of the description: those it rejects are 422, and those
// it allows are not. A public JSON Schema validator reads the description.
func TestDescriptionAndServerAgree(t *testing.T) {
	a := newAgreement(t)
	for _, r := range (&handlers{}).routes() {
		op := at(a.doc, "paths", r.path, strings.ToLower(r.method)).(node)
		t.Run(op["operationId"].(string), func(t *testing.T) {
			if ref, ok := at(op, "requestBody", "content", "application/json", "schema", "$ref").(string); ok {
				a.bodies(t, r, ref)
			}
			parameters, _ := op["parameters"].([]any)
			for i := range parameters {
				a.parameter(t, r, parameters[i].(node), fmt.Sprintf("#/paths/%s/%s/parameters/%d/schema",
					strings.ReplaceAll(r.path, "/", "~1"), strings.ToLower(r.method), i))
			}
		})
	}
	if a.valid < 500 || a.invalid < 1000 {
		t.Errorf("only %d valid requests and %d invalid ones", a.valid, a.invalid)
	}
}

// agreement compares a server with its description.
type agreement struct {
	*world
	doc            node
	compiler       *jsonschema.Compiler
	valid, invalid int
}

func newAgreement(t *testing.T) *agreement {
	tools := quickTools(t)
	a := &agreement{world: open(t, func(c *core.Config) {
		c.Search = tools
		c.AuditKeep = 1000 // many requests search the log
	}), compiler: jsonschema.NewCompiler()}
	a.doc = descriptions(t, a.world)["openapi.json"]
	a.compiler.AssertFormat()
	if err := a.compiler.AddResource("file:///openapi.json", a.doc); err != nil {
		t.Fatal(err)
	}
	return a
}

// quickTools has a pg_dump that only reports its version: each of some hundred imports checks that, and none gets as
// far as running it.
func quickTools(t *testing.T) binaries.Search {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pg_dump"), []byte("#!/bin/sh\necho 'pg_dump (PostgreSQL) 99.0'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return binaries.Search{Explicit: dir, Installed: func() []string { return nil }}
}

func (a *agreement) schema(t *testing.T, pointer string) *jsonschema.Schema {
	t.Helper()
	schema, err := a.compiler.Compile("file:///openapi.json" + strings.ReplaceAll(strings.ReplaceAll(pointer, "{", "%7B"), "}", "%7D"))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// judge compares a response with the description and the rules in words.
func (a *agreement) judge(t *testing.T, what string, described error, inWords bool, got reply) {
	t.Helper()
	if got.status == http.StatusTooManyRequests {
		return
	}
	valid := described == nil && inWords
	if valid {
		a.valid++
	} else {
		a.invalid++
	}
	if valid == (got.status == http.StatusUnprocessableEntity) {
		t.Errorf("%s: %d %s, and the description says %v", what, got.status, got.msg, described)
	}
}

// bodies sends bodies with each field at its edges, and each pair of fields at a few.
func (a *agreement) bodies(t *testing.T, r route, ref string) {
	schema := a.schema(t, ref)
	fields := objectsAt(a.doc, "components", "schemas", strings.TrimPrefix(ref, schemaPrefix), "properties")
	names := slices.Sorted(maps.Keys(fields))
	send := func(body any) {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		described := schema.Validate(body)
		got := a.do(t, request{method: r.method, path: pathOf(r), key: a.org.full, body: string(text), contentType: "application/json"})
		a.judge(t, string(text), described, inWords(body), got)
	}
	for _, body := range []any{node{}, []any{}, "text", 1.0, true} {
		send(body)
	}
	for _, base := range bases(r) {
		send(base)
		send(with(base, "nonsense", 1.0))
		for i, one := range names {
			send(without(base, one))
			for _, value := range a.edges(fields[one]) {
				send(with(base, one, value))
			}
			for _, other := range names[i+1:] {
				for _, value := range a.few(one, fields[one]) {
					for _, second := range a.few(other, fields[other]) {
						send(with(with(base, one, value), other, second))
					}
				}
			}
		}
	}
}

// bases returns bodies that the server accepts if the named resources exist.
func bases(r route) []node {
	switch r.action {
	case model.ActionBackupRestore:
		return []node{{"mode": "in_place"}, {"mode": "new", "name": "copy"}}
	case model.ActionRecoveryCreate:
		return []node{{"target_lsn": "0/1"}, {"target_time": "2030-01-31T12:00:00Z", "mode": "new", "name": "copy"}}
	}
	base := node{}
	if text := validBody(r, "proj_none"); text != "" {
		_ = json.Unmarshal([]byte(text), &base)
	}
	if base["source_url"] != nil {
		base["source_url"] = goodSource
	}
	return []node{base}
}

func with(base node, name string, value any) node {
	body := maps.Clone(base)
	body[name] = value
	return body
}

func without(base node, name string) node {
	body := maps.Clone(base)
	delete(body, name)
	return body
}

// inWords reports whether a body satisfies the rules that the description has in words.
func inWords(body any) bool {
	fields, _ := body.(node)
	for name, value := range fields {
		if text, ok := value.(string); ok && words[name] != nil && !words[name](text) {
			return false
		}
	}
	if !switchesAlone(fields) || !sleepsAlone(fields) {
		return false
	}
	entries, _ := fields["entries"].([]any)
	for _, entry := range entries {
		text, _ := entry.(string)
		if _, err := model.ParseAllowlist("", []string{text}); err != nil {
			return false
		}
	}
	return true
}

// switchesAlone reports whether a change of a database, which here always has connection_limit, leaves its replication alone.
func switchesAlone(fields node) bool {
	_, changes := fields["connection_limit"]
	_, switches := fields["logical_replication"].(bool)
	drops, _ := fields["drop_slots"].(bool)
	return !changes || !switches && !drops
}

// sleepsAlone reports whether a change of a database, which here always has connection_limit, leaves its sleep alone.
func sleepsAlone(fields node) bool {
	_, changes := fields["connection_limit"]
	_, sleeps := fields["sleep_after_seconds"]
	return !changes || !sleeps
}

// edges returns values at the edges of a schema, on both sides, and of other types.
func (a *agreement) edges(schema node) []any {
	schema = a.resolve(schema)
	values := []any{nil, true, false, 1.0, 1.5, -1.0, []any{}, []any{1.0}, node{}}
	for _, text := range edgeTexts {
		values = append(values, text)
	}
	for _, bound := range []string{"minLength", "maxLength"} {
		if n, ok := schema[bound].(float64); ok {
			for _, length := range []int{int(n) - 1, int(n), int(n) + 1} {
				values = append(values, strings.Repeat("a", max(length, 0)), strings.Repeat("é", max(length, 0)))
			}
		}
	}
	for _, bound := range []string{"minimum", "maximum"} {
		if n, ok := schema[bound].(float64); ok {
			values = append(values, n-1, n, n+1, n+0.5)
		}
	}
	if n, ok := schema["maxItems"].(float64); ok {
		values = append(values, slices.Repeat([]any{"10.0.0.1"}, int(n)), slices.Repeat([]any{"10.0.0.1"}, int(n)+1))
		for _, text := range edgeTexts {
			values = append(values, []any{text})
		}
	}
	return values
}

// resolve returns the target of a reference, and omits nullability.
func (a *agreement) resolve(schema node) node {
	if parts, ok := schema["anyOf"].([]any); ok {
		schema = parts[0].(node)
	}
	if ref, ok := schema["$ref"].(string); ok {
		return at(a.doc, "components", "schemas", strings.TrimPrefix(ref, schemaPrefix)).(node)
	}
	return schema
}

// few returns the values of a field that matter to other fields.
func (a *agreement) few(name string, schema node) []any {
	schema = a.resolve(schema)
	if values, ok := schema["enum"].([]any); ok {
		return append(slices.Clone(values), nil)
	}
	values := []any{nil, "", "copy"}
	switch {
	case schema["type"] == "boolean" || slices.Contains(typesOf(schema), any("boolean")):
		values = []any{nil, true, false}
	case name == "password":
		values = append(values, goodPassword)
	case name == "source_url":
		values = append(values, goodSource)
	case name == "target_time":
		values = append(values, "2030-01-31T12:00:00Z")
	case name == "target_lsn":
		values = append(values, "0/1A2B3C4D")
	}
	return values
}

func typesOf(schema node) []any {
	types, _ := schema["type"].([]any)
	return types
}

// parameter sends a query or header parameter at its edges.
func (a *agreement) parameter(t *testing.T, r route, p node, pointer string) {
	name, in := p["name"].(string), p["in"].(string)
	if in == "path" {
		return
	}
	schema := a.schema(t, pointer)
	resolved := a.resolve(p["schema"].(node))
	for _, value := range a.edges(p["schema"].(node)) {
		text, ok := asText(value)
		if !ok || in == "header" && (text == "" || strings.ContainsAny(text, "\n")) {
			continue
		}
		described := schema.Validate(typed(resolved, text))
		request := request{method: r.method, path: queried(r), key: a.org.full, body: validBody(r, "proj_none")}
		if in == "header" {
			request.header = map[string]string{name: text}
		} else {
			target, err := url.Parse(request.path)
			if err != nil {
				t.Fatal(err)
			}
			query := target.Query()
			query.Set(name, text)
			request.path = target.Path + "?" + query.Encode()
		}
		a.judge(t, fmt.Sprintf("%s=%q", name, text), described, words[name] == nil || words[name](text), a.do(t, request))
	}
}

// queried returns the path of a route with its required query.
func queried(r route) string {
	if r.path == "/buckets/{id}/objects" && r.method != http.MethodGet {
		return pathOf(r) + "?key=k"
	}
	return pathOf(r)
}

func asText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool:
		return strconv.FormatBool(v), true
	default:
		return "", false
	}
}

// typed returns the text of a parameter as the value that the description describes.
func typed(schema node, text string) any {
	switch schema["type"] {
	case "integer":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return float64(n)
		}
	case "boolean":
		if text == "true" || text == "false" {
			return text == "true"
		}
	}
	return text
}

package api

import (
	"maps"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// rule is one or more keywords of JSON Schema that describe what the engine or a handler checks. huma does not check
// them, because the engine's messages say what is expected.
type rule map[string]any

// describe adds a rule to a property, or to the schema itself if property is "".
func describe(s *huma.Schema, property string, r rule) {
	if property != "" {
		s = s.Properties[property]
	}
	if s.Extensions == nil {
		s.Extensions = map[string]any{}
	}
	maps.Copy(s.Extensions, r)
}

// noText returns a rule for `not`, to exclude texts that match the pattern.
func noText(pattern string) rule {
	return rule{"type": huma.TypeString, "pattern": pattern}
}

// The rules of names. The functions of package model validate them.
var (
	databaseName = rule{
		"pattern": model.DatabaseNamePattern,
		"not":     noText(`^([Pp][Oo][Ss][Tt][Gg][Rr][Ee][Ss]$|[Tt][Ee][Mm][Pp][Ll][Aa][Tt][Ee])`),
	}
	databaseUser = rule{
		"pattern": model.DatabaseUserPattern,
		"not":     noText(`^(pg_|holdfast|postgres$|public$|none$)|(` + model.ReadOnlySuffix + `|` + model.ReplicationSuffix + `)$`),
	}
	label       = rule{"pattern": model.LabelPattern}
	websiteHost = rule{"pattern": `^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?$`}
	bucketName  = rule{
		"pattern": `^[a-z0-9]+((\.|-+)[a-z0-9]+)*$`, "minLength": 3, "maxLength": 63,
		"not": noText(`^(xn--|sthree-|amzn-s3-demo-)|(-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$|^([0-9]+\.){3}[0-9]+$`),
	}
)

// Rules for fields that depend on each other are conditions (if, then, else), which generators ignore: from oneOf
// and not they generate unusable types. A null field counts as absent.

// properties returns a schema of some properties.
func properties(of map[string]rule) rule { return rule{"properties": of} }

// absent returns the schema of an object without the properties.
func absent(names ...string) rule { return properties(each(rule{"type": "null"}, names)) }

// given returns the schema of an object with the properties as text.
func given(names ...string) rule {
	return rule{"required": names, "properties": each(rule{"type": huma.TypeString}, names)}
}

func each(r rule, names []string) map[string]rule {
	all := map[string]rule{}
	for _, name := range names {
		all[name] = r
	}
	return all
}

// exactlyOne returns the rule that exactly one of two properties is given.
func exactlyOne(one, other string) rule {
	return rule{"if": given(one), "then": absent(other), "else": given(other)}
}

// restoreName returns the rule that mode new requires a name, and a name requires mode new.
func restoreName() rule {
	isNew := properties(map[string]rule{"mode": {"const": wire.RestoreNew}})
	return rule{"dependentSchemas": map[string]rule{
		"mode": {"if": isNew, "then": given("name")},
		"name": {"if": given("name"), "then": rule{"required": []string{"mode"}, "properties": isNew["properties"]}},
	}}
}

// constraints returns the rules of wire's types that their tags cannot express.
func constraints() map[reflect.Type]func(*huma.Schema) {
	return map[reflect.Type]func(*huma.Schema){
		reflect.TypeFor[wire.CreateDatabase](): func(s *huma.Schema) {
			describe(s, "name", databaseName)
			describe(s, "db_user", databaseUser)
		},
		reflect.TypeFor[wire.CreateBranch](): func(s *huma.Schema) {
			describe(s, "name", databaseName)
		},
		reflect.TypeFor[wire.CreateDatabaseRole](): func(s *huma.Schema) { describe(s, "name", databaseUser) },
		reflect.TypeFor[wire.UpdateDatabase](): func(s *huma.Schema) {
			describe(s, "name", databaseName)
		},
		reflect.TypeFor[wire.ReplaceAllowlist](): func(s *huma.Schema) {
			describe(s.Properties["entries"].Items, "", rule{"pattern": `^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$`})
		},
		reflect.TypeFor[wire.PinBackup](): func(s *huma.Schema) {
			describe(s, "", rule{"dependentSchemas": map[string]rule{"pinned": {
				"if": properties(map[string]rule{"pinned": {"const": false}}), "then": properties(map[string]rule{"reason": {"maxLength": 0}}),
			}}})
		},
		reflect.TypeFor[wire.RestoreBackup](): func(s *huma.Schema) {
			describe(s, "name", databaseName)
			describe(s, "", restoreName())
		},
		reflect.TypeFor[wire.ExplainStatement](): func(s *huma.Schema) {
			describe(s, "", exactlyOne("statement", "statement_id"))
		},
		reflect.TypeFor[wire.RequestRestore](): func(s *huma.Schema) {
			describe(s, "name", databaseName)
			describe(s, "target_lsn", rule{"not": noText(`^0+/0+$`)})
			describe(s, "", exactlyOne("target_time", "target_lsn"))
			describe(s, "", restoreName())
		},
		reflect.TypeFor[wire.CreateImport](): func(s *huma.Schema) {
			describe(s, "name", databaseName)
			describe(s, "username", databaseUser)
			follow := properties(map[string]rule{"mode": {"const": wire.ImportFollow}})
			describe(s, "", rule{"dependentSchemas": map[string]rule{
				"same_credentials": {"if": properties(map[string]rule{"same_credentials": {"const": true}}), "then": absent("username", "password")},
				"mode":             {"if": follow, "then": given("publication")},
				"publication":      {"if": given("publication"), "then": rule{"required": []string{"mode"}, "properties": follow["properties"]}},
			}})
		},
		reflect.TypeFor[wire.CreateProject](): func(s *huma.Schema) { describe(s, "name", label) },
		reflect.TypeFor[wire.UpdateProject](): func(s *huma.Schema) { describe(s, "name", label) },
		reflect.TypeFor[wire.UpdateKey]():     func(s *huma.Schema) { describe(s, "name", label) },
		reflect.TypeFor[wire.CreateKey](): func(s *huma.Schema) {
			describe(s, "name", label)
			s.Properties["scopes"].Nullable = true
			describe(s, "", rule{
				"if": given("preset"), "then": absent("scopes"),
				"else": rule{"required": []string{"scopes"}, "properties": map[string]rule{"scopes": {"type": huma.TypeArray}}},
			})
		},
		reflect.TypeFor[wire.CreateWebhook](): func(s *huma.Schema) { describe(s, "name", label) },
		reflect.TypeFor[wire.UpdateWebhook](): func(s *huma.Schema) { describe(s, "name", label) },
		reflect.TypeFor[wire.CreateUploadLink](): func(s *huma.Schema) {
			describe(s, "", exactlyOne("key", "key_prefix"))
		},
		reflect.TypeFor[wire.UpdateBucket](): func(s *huma.Schema) {
			describe(s.Properties["public_prefixes"].Items, "", rule{
				"pattern": `^[^\x00-\x1f\x7f-\x9f*?]+$`, "maxLength": model.MaxPublicPrefix, "not": noText(`\$\{`),
			})
		},
		reflect.TypeFor[wire.SetWebsite](): func(s *huma.Schema) {
			describe(s, "", rule{
				"if": given("redirect_host"), "then": rule{"properties": map[string]rule{
					"index_document": {"type": "null"}, "error_document": {"type": "null"}, "rules": {"maxItems": 0},
				}},
				"else": rule{"required": []string{"index_document"}, "properties": map[string]rule{
					"index_document": {"type": huma.TypeString}, "redirect_protocol": {"type": "null"},
				}},
			})
			describe(s, "index_document", rule{"pattern": `^[^\x00-\x1f\x7f-\x9f/]+$`})
			describe(s, "redirect_host", websiteHost)
		},
		reflect.TypeFor[wire.SetWebsiteRule](): func(s *huma.Schema) {
			describe(s, "redirect_host", websiteHost)
		},
		reflect.TypeFor[wire.CreateBucket](): func(s *huma.Schema) {
			describe(s, "name", bucketName)
		},
	}
}

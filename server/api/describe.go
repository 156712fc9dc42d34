package api

import (
	"net/http"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
	"holdfast/server/gate"
)

// register adds the routes to the router and returns their description.
func (r *router) register(opts Options, routes []route) *huma.OpenAPI {
	setErrors()
	config := huma.Config{
		OpenAPI:       newDescription(opts),
		Formats:       map[string]huma.Format{"application/json": jsonFormat()},
		DefaultFormat: "application/json",
	}
	r.api = huma.NewAPI(config, r)
	for _, row := range routes {
		row.handler(r, row.operation())
	}
	finishDescription(config.OpenAPI)
	return config.OpenAPI
}

// operation describes the route to huma.
func (r route) operation() huma.Operation {
	op := model.OperationFor(r.action)
	described := huma.Operation{
		OperationID: op.Name + r.variant,
		Method:      r.method,
		Path:        r.path,
		Summary:     summary(op.Name + r.variant),
		Description: needs(op),
		Tags:        []string{tag(op.Action)},
		Errors:      []int{400, 403, 422, 429},
		Metadata:    map[string]any{operationKey: op},
		// The gate has already read and bounded the body.
		MaxBodyBytes:    -1,
		BodyReadTimeout: -1,
	}
	if takesIdempotencyKey(r.method, op) {
		described.Parameters = append(described.Parameters, &huma.Param{
			Name: gate.IdempotencyHeader, In: "header",
			Description: "Any text of the client's, unique to what it wants done. The request is carried out once, however often it is sent: for 24 hours the same request is given the first answer's data, and another one with the same key is a conflict.",
			Schema:      &huma.Schema{Type: huma.TypeString, MinLength: new(1), MaxLength: new(model.MaxIdempotencyKey), Pattern: `^[ -~]*$`},
		})
	}
	if op.Conditional {
		described.Parameters = append(described.Parameters, &huma.Param{
			Name: "If-Match", In: "header",
			Description: "ETags of earlier responses about the resource. If it has changed since, nothing is done.",
			Schema:      &huma.Schema{Type: huma.TypeString, Pattern: model.MatchPattern},
		})
	}
	described.Security = []map[string][]string{} // no key is needed
	if op.Scope != "" {
		described.Errors = []int{401, 403, 404, 409, 422, 429}
		described.Security = []map[string][]string{{securityScheme: {string(op.Scope)}}}
	}
	if op.Conditional {
		described.Errors = append(described.Errors, http.StatusPreconditionFailed)
	}
	if r.method != http.MethodGet && r.method != http.MethodDelete {
		described.Errors = append(described.Errors, http.StatusRequestEntityTooLarge)
	}
	if op.Changes() || op.Scope == "" {
		described.Errors = append(described.Errors, http.StatusInsufficientStorage)
	}
	if op.Action == model.ActionObjectCopy {
		described.Errors = append(described.Errors, http.StatusServiceUnavailable)
	}
	return described
}

// needs describes what the operation requires of the key.
func needs(op model.Operation) string {
	if op.Scope == "" {
		return "Needs no key."
	}
	text := "Needs the scope `" + string(op.Scope) + "`." + alsoNeeds(op)
	for _, other := range op.Others {
		act, when := model.OperationFor(other.Act), other.When
		switch {
		case other.Field != "":
			when = "With `" + other.Field + "` `" + other.Value + "`"
		case when == "":
			if act.Scope != op.Scope {
				text += " It also needs the scope `" + string(act.Scope) + "`."
			}
			text += alsoNeeds(act)
			continue
		}
		text += " " + when + " it also needs the scope `" + string(act.Scope) + "`."
		if other.When != "" {
			act.Rate = model.RateNone // the engine checks only the scope and the toggle
		}
		text += alsoNeeds(act)
	}
	return text
}

// alsoNeeds describes what an operation requires of the key besides a scope.
func alsoNeeds(act model.Operation) (text string) {
	if act.Destructive {
		text += " Deletes data: the key's dangerous-operations toggle must be on."
	}
	if act.Rate != model.RateNone {
		text += " Draws on the key's budget `" + string(act.Rate) + "`."
	}
	return text
}

// summary turns an operation's name into words: "listDatabases" into "List databases".
func summary(name string) string {
	var words []string
	start := 0
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(name[i-1])) {
			words, start = append(words, name[start:i]), i
		}
	}
	words = append(words, name[start:])
	for i, word := range words {
		if strings.ToUpper(word) != word {
			words[i] = strings.ToLower(word)
		}
	}
	text := strings.Join(words, " ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// tag returns the specification's capability area of an operation.
func tag(action model.Action) string {
	area, rest, _ := strings.Cut(string(action), ".")
	switch {
	case area == "database" && (strings.HasPrefix(rest, "ssl.") || strings.HasPrefix(rest, "allowlist.") || strings.HasPrefix(rest, "rls.")):
		return "Network & security"
	case area == "database" && (strings.HasPrefix(rest, "session.") || strings.HasPrefix(rest, "statement.") || strings.HasPrefix(rest, "lock.") || strings.HasPrefix(rest, "relation.")):
		return "Insight"
	case area == "database" && strings.HasPrefix(rest, "role."):
		return "Roles"
	case area == "branch":
		return "Branches"
	case area == "database" && (strings.HasPrefix(rest, "version.") || strings.HasPrefix(rest, "settings.") || strings.HasPrefix(rest, "extension.")):
		return "Settings & extensions"
	case area == "bucket" || area == "object":
		return "Storage"
	case area == "key" || area == "audit":
		return "Account"
	case area == "trash":
		return "Trash"
	case area == "export":
		return "Backups"
	case area == "recovery":
		return "Recovery"
	case area == "account" || area == "agent" || area == "device":
		return strings.ToUpper(area[:1]) + area[1:]
	default:
		return strings.ToUpper(area[:1]) + area[1:] + "s"
	}
}

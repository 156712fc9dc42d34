package api

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"

	"holdfast/engine/model"
)

// maxComplaints is how many faults of a request are told at a time.
const maxComplaints = 5

// complaint makes one error of what huma found wrong with a request. It names
// fields and says what would be right; the values huma puts into its details
// are left out, they may be passwords.
func (f *form) complaint(message string, errs []error) error {
	var texts []string
	for _, err := range errs {
		switch e := err.(type) {
		case *model.Error:
			return e
		case *huma.ErrorDetail:
			texts = append(texts, f.explain(e))
		}
	}
	if len(texts) == 0 {
		return model.Invalid("body", "%s", message)
	}
	slices.Sort(texts) // huma finds some faults in a map's order
	texts = slices.Compact(texts)
	return model.Errorf(model.CodeValidation, "%s", strings.Join(texts[:min(len(texts), maxComplaints)], "; "))
}

func (f *form) explain(detail *huma.ErrorDetail) string {
	field := fieldName(detail.Location)
	if name, ok := between(detail.Message, "expected required property ", " to be present"); ok {
		return strings.TrimPrefix(field+"."+name, "body.") + ": is required"
	}
	if detail.Message == "unexpected property" {
		return showName(field) + ": is not a field here; " + known("fields", f.fields)
	}
	return field + ": " + remedy(detail.Message)
}

// remedy says in a client's words what huma expected. Where huma has words
// that are not known here, it is told generally: they could hold the value.
func remedy(message string) string {
	for _, known := range []struct{ before, after, remedy string }{
		{"expected string to be RFC 3339 date-time", "", "must be a time such as 2030-01-31T12:00:00Z"},
		{"invalid date/time for format ", "", "must be a time such as 2030-01-31T12:00:00Z"},
		{"expected string to be ", "", "must be #"},
		{"expected boolean", "", "must be true or false"},
		{"invalid boolean", "", "must be true or false"},
		{"expected integer", "", "must be a whole number"},
		{"invalid integer", "", "must be a whole number"},
		{"expected string", "", "must be a string"},
		{"expected object", "", "must be a JSON object"},
		{"expected array length <= ", "", "must have at most # entries"},
		{"expected array", "", "must be an array"},
		{"expected number >= ", "", "must be at least #"},
		{"expected number <= ", "", "must be at most #"},
		{"expected length >= ", "", "must have at least # characters"},
		{"expected length <= ", "", "must have at most # characters"},
		{"expected value to be one of \"", "\"", "must be one of #"},
		{"required ", " parameter is missing", "is required"},
	} {
		if bound, ok := between(message, known.before, known.after); ok {
			return strings.Replace(known.remedy, "#", bound, 1)
		}
	}
	return "is not valid here"
}

func between(text, before, after string) (string, bool) {
	rest, ok := strings.CutPrefix(text, before)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, after)
}

// fieldName turns huma's "body.name" and "query.limit" into what the client
// calls it.
func fieldName(location string) string {
	for _, place := range []string{"body.", "query.", "path.", "header."} {
		if name, ok := strings.CutPrefix(location, place); ok {
			return name
		}
	}
	if location == "" {
		return "body"
	}
	return location
}

// showName makes a name the client chose fit for a message: short, and quoted
// unless it is plain.
func showName(name string) string {
	const longest = 64
	plain := name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r >= unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.[]", r)
	})
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "") + "…"
	}
	if plain {
		return name
	}
	return strconv.QuoteToASCII(name)
}

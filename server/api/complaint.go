package api

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"holdfast/engine/model"
)

// maxComplaints is the maximum number of faults that an error lists.
const maxComplaints = 5

// complaint makes one error of huma's validation errors. It names fields and says what is expected; it omits huma's
// values, which may be passwords.
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
	slices.Sort(texts) // huma reports some faults in map order
	texts = slices.Compact(texts)
	return model.Errorf(model.CodeValidation, "%s", strings.Join(texts[:min(len(texts), maxComplaints)], "; "))
}

func (f *form) explain(detail *huma.ErrorDetail) string {
	field := fieldName(detail.Location)
	if name, ok := argument(validation.MsgExpectedRequiredProperty, detail.Message); ok {
		return strings.TrimPrefix(field+"."+name, "body.") + ": is required"
	}
	if detail.Message == validation.MsgUnexpectedProperty {
		return showName(field) + ": is not a field here; " + known("fields", f.fields)
	}
	if text, ok := remedy(detail.Message); ok {
		return field + ": " + text
	}
	return field + ": " + f.remedyOf(detail)
}

// remedy translates huma's validation messages into what the client should send. It omits unknown messages, which
// could contain the value.
func remedy(message string) (string, bool) {
	for _, known := range []struct{ template, remedy string }{
		{validation.MsgExpectedRFC3339DateTime, aTime},
		{validation.MsgExpectedBePattern, "must be #"},
		{validation.MsgExpectedBoolean, "must be true or false"},
		{validation.MsgExpectedInteger, aWholeNumber},
		{validation.MsgExpectedString, "must be a string"},
		{validation.MsgExpectedObject, "must be a JSON object"},
		{validation.MsgExpectedMaxItems, "must have at most # entries"},
		{validation.MsgExpectedArray, "must be an array"},
		{validation.MsgExpectedMinimumNumber, "must be at least #"},
		{validation.MsgExpectedMaximumNumber, "must be at most #"},
		{validation.MsgExpectedMinLength, "must have at least # characters"},
		{validation.MsgExpectedMaxLength, "must have at most # characters"},
		{validation.MsgExpectedOneOf, "must be one of #"},
	} {
		if bound, ok := argument(known.template, message); ok {
			return strings.Replace(known.remedy, "#", bound, 1), true
		}
	}
	return "", false
}

const (
	aTime        = "must be a time such as 2030-01-31T12:00:00Z"
	aWholeNumber = "must be a whole number"
)

// remedyOf describes the fault of a parameter that is missing or cannot be parsed. huma does not validate it and has
// no specific message for these cases, so the text comes from the parameter's description.
func (f *form) remedyOf(detail *huma.ErrorDetail) string {
	i := slices.IndexFunc(f.parameters, func(p *huma.Param) bool { return p.In+"."+p.Name == detail.Location })
	switch {
	case i < 0:
		return "is not valid here"
	case detail.Value == "":
		return "is required"
	case f.parameters[i].Schema.Type == huma.TypeInteger:
		return aWholeNumber
	case f.parameters[i].Schema.Format == "date-time":
		return aTime
	default:
		return "is not valid here"
	}
}

// argument returns the text that package fmt put into a template to make the message. The template has at most one
// verb, of two characters.
func argument(template, message string) (string, bool) {
	before, after, verb := strings.Cut(template, "%")
	if !verb {
		return "", message == template
	}
	return between(message, before, after[1:])
}

func between(text, before, after string) (string, bool) {
	rest, ok := strings.CutPrefix(text, before)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, after)
}

// fieldName turns huma's "body.name" and "query.limit" into the client's name of the field.
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

// showName makes a name from the client safe for a message: short, and quoted unless it is plain.
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

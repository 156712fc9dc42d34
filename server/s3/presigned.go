package s3

import (
	"net/http"
	"strings"

	"holdfast/engine/model"
)

// tokenCharacters are the characters of which the names of headers are (RFC 9110, 5.6.2).
const tokenCharacters = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// given returns the values of a header x-amz-*, which may be in the query of a presigned request.
func (q *request) given(h http.Header, name string) []string {
	if values, ok := h[name]; ok {
		return values
	}
	return q.hoisted[name]
}

// takeHoisted makes the parameters of a verified presigned request that stand for headers its headers. net/http has not
// checked them.
func (q *request) takeHoisted(h http.Header) error {
	for name, values := range q.hoisted {
		lower := strings.ToLower(name)
		if strings.Trim(name, tokenCharacters) != "" {
			return invalidArgument(lower, values[0], "The parameter %q has no name of a header", lower)
		}
		for _, value := range values {
			if !model.IsStorable(value, len(value)) {
				return invalidArgument(lower, value, "The parameter %s is not valid in a header", lower)
			}
			if sent, ok := h[name]; ok && strings.Join(sent, ",") != value {
				return invalidArgument(lower, value, "The parameter %s contradicts the header of that name", lower)
			}
			h[name] = []string{value}
		}
	}
	return nil
}

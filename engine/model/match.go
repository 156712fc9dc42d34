package model

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Tag identifies the state of a resource, as far as clients change it: it changes whenever v does. It is an entity tag
// of HTTP (RFC 9110, 8.8.3) with its quotes.
func Tag(v any) string {
	text, _ := json.Marshal(v) // records can always be encoded
	sum := sha256.Sum256(text)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}

// MatchPattern is the form of the condition If-Match.
const MatchPattern = `^(\*|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$`

var matchForm = regexp.MustCompile(MatchPattern)

// ParseMatch parses the condition If-Match: "*", or a list of entity tags. A weak tag matches nothing (RFC 9110,
// 13.1.1).
func ParseMatch(field, text string) ([]string, error) {
	if !matchForm.MatchString(text) {
		return nil, Invalid(field, "must be *, or ETags of earlier responses in quotes, separated by commas")
	}
	tags := strings.Split(text, ",")
	for i, tag := range tags {
		tags[i] = strings.TrimSpace(tag)
	}
	return tags, nil
}

// Match checks the call's condition on the resource with this tag. Call it where nothing can change the resource
// before the call does.
func (c *Call) Match(tag string) error {
	if c.IfMatch == nil || slices.Contains(c.IfMatch, tag) || c.IfMatch[0] == "*" {
		return nil
	}
	return &Error{
		Code: CodeConflict, Reason: ReasonChanged,
		Message: "the resource has changed since its ETag was returned, so nothing was done: read it again, and repeat the change with the new ETag",
	}
}

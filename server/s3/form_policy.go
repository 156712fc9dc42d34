package s3

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// formPolicy is the policy of an HTML form: what its maker allows those who have the form to upload.
//
// Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTConstructPolicy.html
type formPolicy struct {
	expires    time.Time
	conditions []formCondition
	// least and most are the bounds of the file's size in bytes; most is -1 for none.
	least, most int64
}

// formCondition is a condition on a field.
type formCondition struct {
	text     string // as error messages quote it
	field    string // in lower case, with the dollar sign
	value    string
	isPrefix bool
}

func invalidPolicy(format string, args ...any) error {
	return fail("InvalidPolicyDocument", "Invalid Policy: "+format, args...)
}

func againstPolicy(format string, args ...any) error {
	return fail("AccessDenied", "Invalid according to Policy: "+format, args...)
}

func invalidPolicyJSON() error { return invalidPolicy("Invalid JSON.") }

// parseFormPolicy parses the field policy of a form.
func parseFormPolicy(field string) (*formPolicy, error) {
	if field == "" {
		return nil, invalidPolicy("Expecting '{' but found End-of-Input")
	}
	text, err := base64.StdEncoding.DecodeString(field)
	if err != nil {
		return nil, invalidPolicy("invalid Base64 encoding.")
	}
	var document map[string]json.RawMessage
	if json.Unmarshal(text, &document) != nil {
		return nil, invalidPolicyJSON()
	}
	for _, name := range slices.Sorted(maps.Keys(document)) {
		if name != "expiration" && name != "conditions" {
			return nil, invalidPolicy("Unexpected: %q", name)
		}
	}
	p := &formPolicy{most: -1}
	if err := p.parseExpiration(document["expiration"]); err != nil {
		return nil, err
	}
	return p, p.parseConditions(document["conditions"])
}

func (p *formPolicy) parseExpiration(raw json.RawMessage) (err error) {
	if raw == nil {
		return invalidPolicy("Policy missing expiration.")
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return invalidPolicyJSON()
	}
	if p.expires, err = time.Parse(time.RFC3339, text); err != nil {
		return invalidPolicy("Invalid 'expiration' value: '%s'", text)
	}
	return nil
}

func (p *formPolicy) parseConditions(raw json.RawMessage) error {
	if raw == nil {
		return invalidPolicy("Policy missing conditions.")
	}
	var conditions []json.RawMessage
	if json.Unmarshal(raw, &conditions) != nil || conditions == nil {
		return invalidPolicy("Invalid 'conditions' value: must be a List.")
	}
	for _, raw := range conditions {
		var list []json.RawMessage
		var object map[string]json.RawMessage
		var err error
		switch {
		case json.Unmarshal(raw, &list) == nil && list != nil:
			err = p.parseCondition(raw, list)
		case json.Unmarshal(raw, &object) == nil && object != nil:
			err = p.parseSimpleCondition(object)
		default:
			err = invalidPolicy("Invalid condition test: must be a List or Object.")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseCondition parses a condition such as ["eq", "$key", "value"].
func (p *formPolicy) parseCondition(raw json.RawMessage, list []json.RawMessage) error {
	if len(list) == 0 {
		return invalidPolicy("Invalid Condition: missing operation identifier.")
	}
	var operation string
	if json.Unmarshal(list[0], &operation) != nil {
		return invalidPolicyJSON()
	}
	if !slices.Contains([]string{"eq", "starts-with", "content-length-range"}, operation) {
		return invalidPolicy("Invalid Condition: unknown operation '%s'.", operation)
	}
	if len(list) != 3 {
		return invalidPolicy("Invalid %s: wrong number of arguments.", operation)
	}
	if operation == "content-length-range" {
		return p.parseRange(list[1], list[2])
	}
	var compact bytes.Buffer
	c := formCondition{isPrefix: operation == "starts-with"}
	if json.Unmarshal(list[1], &c.field) != nil || json.Unmarshal(list[2], &c.value) != nil || json.Compact(&compact, raw) != nil {
		return invalidPolicyJSON()
	}
	c.field, c.text = strings.ToLower(c.field), compact.String()
	p.conditions = append(p.conditions, c)
	return nil
}

// parseRange parses the bounds of the file's size. Of several ranges, all hold.
func (p *formPolicy) parseRange(least, most json.RawMessage) error {
	from, err1 := strconv.ParseInt(strings.Trim(string(least), `"`), 10, 64)
	to, err2 := strconv.ParseInt(strings.Trim(string(most), `"`), 10, 64)
	if err1 != nil || err2 != nil || from < 0 || to < 0 {
		return invalidPolicyJSON()
	}
	p.least = max(p.least, from)
	if p.most < 0 || to < p.most {
		p.most = to
	}
	return nil
}

// parseSimpleCondition parses a condition such as {"key": "value"}.
func (p *formPolicy) parseSimpleCondition(object map[string]json.RawMessage) error {
	if len(object) != 1 {
		return invalidPolicy("Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.")
	}
	for name, raw := range object {
		var value string
		if json.Unmarshal(raw, &value) != nil {
			return invalidPolicy("Invalid Simple-Condition: value must be a string.")
		}
		p.conditions = append(p.conditions, formCondition{
			text: fmt.Sprintf(`["eq", "$%s", "%s"]`, name, value), field: "$" + strings.ToLower(name), value: value,
		})
	}
	return nil
}

// check refuses a form whose fields the policy does not allow. The bucket and the key must be among them, so that no
// policy is for every bucket.
func (p *formPolicy) check(fields map[string]string, now time.Time) error {
	if !now.Before(p.expires) {
		return againstPolicy("Policy expired.")
	}
	covered := map[string]bool{"policy": true, "x-amz-signature": true}
	for _, c := range p.conditions {
		name, ok := strings.CutPrefix(c.field, "$")
		if !ok || !c.holds(name, fields[name]) {
			return againstPolicy("Policy Condition failed: %s", c.text)
		}
		covered[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !covered[name] && !strings.HasPrefix(name, "x-ignore-") {
			return againstPolicy("Extra input fields: %s", name)
		}
	}
	return nil
}

// holds reports whether the condition holds for the value of its field. A Content-Type may be a list, of which each
// must have the prefix.
func (c formCondition) holds(name, value string) bool {
	if !c.isPrefix {
		return value == c.value
	}
	if name != "content-type" {
		return strings.HasPrefix(value, c.value)
	}
	for one := range strings.SplitSeq(value, ",") {
		if !strings.HasPrefix(strings.TrimSpace(one), c.value) {
			return false
		}
	}
	return true
}

package s3

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"

	"holdfast/engine/model"
)

// policyDocument is a bucket policy.
type policyDocument struct {
	Version   *string
	Statement *[]policyStatement
}

type policyStatement struct {
	Effect    string
	Principal json.RawMessage
	Action    policyNames
	Resource  policyNames
	Condition json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *policyDocument) UnmarshalJSON(text []byte) error {
	type plain policyDocument
	if err := checkMembers(text, "Version", "Id", "Statement"); err != nil {
		return err
	}
	return json.Unmarshal(text, (*plain)(p))
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *policyStatement) UnmarshalJSON(text []byte) error {
	type plain policyStatement
	if err := checkMembers(text, "Sid", "Effect", "Principal", "Action", "Resource", "Condition"); err != nil {
		return err
	}
	return json.Unmarshal(text, (*plain)(s))
}

// checkMembers refuses an object with members that are unknown here or that occur twice: to pass over one could give more than
// the policy says.
func checkMembers(text []byte, known ...string) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return malformedPolicy("This policy contains invalid Json")
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return err
		}
		text, _ := name.(string)
		switch {
		case seen[text]:
			return malformedPolicy("The policy has the member %s twice", text)
		case strings.HasPrefix(text, "Not"):
			return fail("NotImplemented", "A policy says here what everybody may, not what is excepted: %s", text)
		case !slices.Contains(known, text):
			return malformedPolicy("Unknown field %s", text)
		}
		seen[text] = true
	}
	return nil
}

// policyNames is a name or a list of names.
type policyNames []string

// UnmarshalJSON implements json.Unmarshaler.
func (n *policyNames) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*n = policyNames{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(n))
}

func malformedPolicy(format string, args ...any) error {
	return fail("MalformedPolicy", format, args...)
}

// parsePolicy returns what a policy lets everybody do. It refuses one that says anything else than which objects of the bucket
// everybody may read, and whether everybody may list their keys.
func parsePolicy(text []byte, bucket string) (may model.PublicRights, err error) {
	if !bytes.HasPrefix(text, []byte("{")) {
		return may, malformedPolicy("Policies must be valid JSON and the first byte must be '{'")
	}
	var p policyDocument
	if err := json.Unmarshal(text, &p); err != nil {
		if refusal, ok := errors.AsType[*failure](err); ok {
			return may, refusal
		}
		return may, malformedPolicy("This policy contains invalid Json")
	}
	switch {
	case p.Statement == nil:
		return may, malformedPolicy("Missing required field Statement")
	case len(*p.Statement) == 0:
		return may, malformedPolicy("Could not parse the policy: Statement is empty!")
	case p.Version != nil && *p.Version != "2012-10-17" && *p.Version != "2008-10-17":
		return may, malformedPolicy("The policy must contain a valid version string")
	}
	for _, s := range *p.Statement {
		if err := s.validate(bucket); err != nil {
			return may, err
		}
	}
	return publicRights(*p.Statement, bucket)
}

var policyAction = regexp.MustCompile(`^s3:[A-Za-z*?]+$`)

// validate checks what S3 checks of a statement.
func (s policyStatement) validate(bucket string) error {
	if s.Effect != "Allow" && s.Effect != "Deny" {
		return malformedPolicy("Invalid effect: %s", s.Effect)
	}
	if !s.hasPrincipal() {
		return malformedPolicy("Invalid principal in policy")
	}
	if len(s.Action) == 0 || slices.ContainsFunc(s.Action, func(a string) bool { return !policyAction.MatchString(a) }) {
		return malformedPolicy("Policy has invalid action")
	}
	if len(s.Resource) == 0 || slices.ContainsFunc(s.Resource, func(r string) bool { return !isResourceOf(bucket, r) }) {
		return malformedPolicy("Policy has invalid resource")
	}
	ofObject := func(r string) bool { return strings.Contains(r, "/") }
	objects := slices.ContainsFunc(s.Resource, ofObject)
	buckets := slices.ContainsFunc(s.Resource, func(r string) bool { return !ofObject(r) })
	if err := validateCondition(s.Condition, s.Action); err != nil {
		return err
	}
	if slices.ContainsFunc(s.Action, func(a string) bool { return !applies(a, objects, buckets) }) {
		return malformedPolicy("Action does not apply to any resource(s) in statement")
	}
	return nil
}

// hasPrincipal reports whether the statement is about everybody: there are no other principals here.
func (s policyStatement) hasPrincipal() bool {
	var names policyNames
	if names.UnmarshalJSON(s.Principal) != nil {
		var in struct{ AWS policyNames }
		if checkMembers(s.Principal, "AWS") != nil || json.Unmarshal(s.Principal, &in) != nil {
			return false
		}
		names = in.AWS
	}
	return len(names) == 1 && names[0] == "*"
}

func isResourceOf(bucket, resource string) bool {
	name, ok := strings.CutPrefix(resource, "arn:aws:s3:::")
	return ok && (name == bucket || strings.HasPrefix(name, bucket+"/"))
}

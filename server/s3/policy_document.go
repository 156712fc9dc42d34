package s3

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
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

// publicPolicy returns the policy of a bucket that was made public by the API.
func publicPolicy(bucket string) string {
	return fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Sid":"PublicRead","Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::%s/*"}]}`, bucket)
}

func malformedPolicy(format string, args ...any) error {
	return fail("MalformedPolicy", format, args...)
}

// parsePolicy returns whether a policy makes its bucket public. It refuses one that says anything else than that
// everybody, or nobody without a key, may read the objects.
func parsePolicy(text []byte, bucket string) (public bool, err error) {
	if !bytes.HasPrefix(text, []byte("{")) {
		return false, malformedPolicy("Policies must be valid JSON and the first byte must be '{'")
	}
	var p policyDocument
	if err := json.Unmarshal(text, &p); err != nil {
		return false, malformedPolicy("This policy contains invalid Json")
	}
	switch {
	case p.Statement == nil:
		return false, malformedPolicy("Missing required field Statement")
	case len(*p.Statement) == 0:
		return false, malformedPolicy("Could not parse the policy: Statement is empty!")
	case p.Version != nil && *p.Version != "2012-10-17" && *p.Version != "2008-10-17":
		return false, malformedPolicy("The policy must contain a valid version string")
	}
	denied := false
	for _, s := range *p.Statement {
		if err := s.validate(bucket); err != nil {
			return false, err
		}
		if !s.isKnown(bucket) {
			return false, fail("NotImplemented", "A policy can let everybody (Principal *) s3:GetObject all objects of the bucket, or deny that. Other rights are scopes of keys.")
		}
		denied = denied || s.Effect == "Deny"
	}
	return !denied, nil
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
	objects := slices.ContainsFunc(s.Resource, func(r string) bool { return strings.Contains(r, "/") })
	if slices.ContainsFunc(s.Action, func(a string) bool { return strings.HasSuffix(a, "Object") && a != "s3:" && !objects }) {
		return malformedPolicy("Action does not apply to any resource(s) in statement")
	}
	return nil
}

// hasPrincipal reports whether the statement is about everybody: there are no other principals here.
func (s policyStatement) hasPrincipal() bool {
	var names policyNames
	if names.UnmarshalJSON(s.Principal) != nil {
		var in struct{ AWS policyNames }
		if json.Unmarshal(s.Principal, &in) != nil {
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

// isKnown reports whether the statement is about reading all objects of the bucket.
func (s policyStatement) isKnown(bucket string) bool {
	return slices.Equal(s.Action, policyNames{"s3:GetObject"}) && slices.Equal(s.Resource, policyNames{"arn:aws:s3:::" + bucket + "/*"}) &&
		(len(s.Condition) == 0 || string(s.Condition) == "null" || string(s.Condition) == "{}")
}

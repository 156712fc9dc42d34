package s3

import (
	"bytes"
	"encoding/json"
	"errors"
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

// publicPolicy returns the policy of a bucket whose public rights were set by the API.
func publicPolicy(bucket string, may publicRights) string {
	var statements []string
	add := func(sid, action, resource string) {
		statements = append(statements, fmt.Sprintf(`{"Sid":%q,"Effect":"Allow","Principal":"*","Action":%s,"Resource":"arn:aws:s3:::%s"}`, sid, action, resource))
	}
	if may.list {
		add("PublicList", `["s3:GetBucketLocation","s3:ListBucket"]`, bucket)
	}
	if may.read {
		add("PublicRead", `"s3:GetObject"`, bucket+"/*")
	}
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
}

// publicRights are what everybody may without a key.
type publicRights struct{ read, list bool }

// location is the action that may be allowed together with the list.
const location = "s3:GetBucketLocation"

func malformedPolicy(format string, args ...any) error {
	return fail("MalformedPolicy", format, args...)
}

// parsePolicy returns what a policy lets everybody do. It refuses one that says anything else than whether everybody may
// read the objects of the bucket and list their keys.
func parsePolicy(text []byte, bucket string) (may publicRights, err error) {
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
	denied, locates := publicRights{}, false
	for _, s := range *p.Statement {
		if err := s.validate(bucket); err != nil {
			return publicRights{}, err
		}
		of, known := s.rights(bucket)
		if !known {
			return publicRights{}, fail("NotImplemented", "A policy can let everybody (Principal *) s3:GetObject all objects of the bucket, and s3:ListBucket and s3:GetBucketLocation of the bucket, or deny that. Other rights are scopes of keys.")
		}
		to := &may
		if s.Effect == "Deny" {
			to = &denied
		}
		locates = locates || slices.Contains(s.Action, location)
		to.read, to.list = to.read || of.read, to.list || of.list
	}
	may = publicRights{may.read && !denied.read, may.list && !denied.list}
	if locates && !may.list {
		return publicRights{}, fail("NotImplemented", "Everybody may s3:GetBucketLocation together with s3:ListBucket only.")
	}
	return may, nil
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

// rights returns what the statement is about, false if that is something else than reading all objects and listing their
// keys. The location of a bucket, which is the same for all, may be told with them.
func (s policyStatement) rights(bucket string) (of publicRights, known bool) {
	if len(s.Condition) > 0 && string(s.Condition) != "null" && string(s.Condition) != "{}" {
		return of, false
	}
	arn := "arn:aws:s3:::" + bucket
	for _, r := range s.Resource {
		if r != arn && r != arn+"/*" {
			return of, false
		}
	}
	whole, objects := slices.Contains(s.Resource, arn), slices.Contains(s.Resource, arn+"/*")
	for _, action := range s.Action {
		switch {
		case action == "s3:GetObject" && objects:
			of.read = true
		case action == "s3:ListBucket" && whole:
			of.list = true
		case action == location && whole && s.Effect == "Allow":
		default:
			return of, false
		}
	}
	return of, true
}

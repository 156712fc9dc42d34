package s3

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"holdfast/engine/model"
)

// location is the action that may be allowed together with the list.
const location = "s3:GetBucketLocation"

// publicPolicy returns the policy of a bucket whose public rights were set by the API.
func publicPolicy(bucket string, may model.PublicRights) string {
	var statements []string
	add := func(sid, action string, resources ...string) {
		for i, r := range resources {
			resources[i] = "arn:aws:s3:::" + bucket + r
		}
		list, _ := json.Marshal(resources) // texts always can be
		if len(resources) == 1 {
			list = list[1 : len(list)-1]
		}
		statements = append(statements, fmt.Sprintf(`{"Sid":%q,"Effect":"Allow","Principal":"*","Action":%s,"Resource":%s}`, sid, action, list))
	}
	if may.List {
		add("PublicList", `["s3:GetBucketLocation","s3:ListBucket"]`, "")
	}
	if may.Read {
		add("PublicRead", `"s3:GetObject"`, "/*")
	} else if len(may.Prefixes) > 0 {
		var resources []string
		for _, p := range may.Prefixes {
			resources = append(resources, "/"+p+"*")
		}
		add("PublicRead", `"s3:GetObject"`, resources...)
	}
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
}

// publicRights returns what the statements of a policy let everybody do.
func publicRights(statements []policyStatement, bucket string) (may model.PublicRights, err error) {
	var denied model.PublicRights
	locates := false
	for _, s := range statements {
		of, known := s.rights(bucket)
		if !known {
			return may, fail("NotImplemented", "A policy can let everybody (Principal *) s3:GetObject all objects of the bucket or those whose keys begin with a prefix (arn:aws:s3:::%s/PREFIX*), and s3:ListBucket and s3:GetBucketLocation of the bucket, or deny that. Other rights are scopes of keys.", bucket)
		}
		to := &may
		if s.Effect == "Deny" {
			to = &denied
		}
		locates = locates || slices.Contains(s.Action, location)
		to.Read, to.List, to.Prefixes = to.Read || of.Read, to.List || of.List, append(to.Prefixes, of.Prefixes...)
	}
	if may, err = without(may, denied); err != nil {
		return model.PublicRights{}, err
	}
	if locates && !may.List {
		return model.PublicRights{}, fail("NotImplemented", "Everybody may s3:GetBucketLocation together with s3:ListBucket only.")
	}
	return may, nil
}

// without returns the rights that are left of some when others are denied.
func without(may, denied model.PublicRights) (model.PublicRights, error) {
	left := model.PublicRights{Read: may.Read && !denied.Read, List: may.List && !denied.List}
	if denied.Read {
		return left, nil
	}
	for _, p := range denied.Prefixes {
		within := func(allowed string) bool { return len(allowed) < len(p) && strings.HasPrefix(p, allowed) }
		if may.Read || slices.ContainsFunc(may.Prefixes, within) {
			return left, fail("NotImplemented", "A policy cannot deny a part of what it allows (%s*). Allow the other prefixes.", p)
		}
	}
	if may.Read { // all prefixes are in it
		return left, nil
	}
	kept := slices.DeleteFunc(may.Prefixes, denied.Reads)
	var err error
	if left.Prefixes, err = model.ValidatePublicPrefixes("Resource", kept); err != nil {
		return left, fail("NotImplemented", "%s", model.PublicMessage(err))
	}
	return left, nil
}

// rights returns what the statement is about, false if that is something else than reading objects and listing all keys.
// The location of a bucket, which is the same for all, may be told with them.
func (s policyStatement) rights(bucket string) (of model.PublicRights, known bool) {
	if len(s.Condition) > 0 && string(s.Condition) != "null" && string(s.Condition) != "{}" {
		return of, false
	}
	whole := false
	var objects model.PublicRights
	for _, r := range s.Resource {
		key, ofObjects := strings.CutPrefix(r, "arn:aws:s3:::"+bucket+"/")
		prefix, wild := strings.CutSuffix(key, "*")
		switch {
		case !ofObjects: // validate has compared it with the bucket
			whole = true
		case prefix == "" && wild:
			objects.Read = true
		case !wild || strings.ContainsAny(prefix, "*?") || strings.Contains(prefix, "${"): // one object, or a pattern
			return of, false
		default:
			objects.Prefixes = append(objects.Prefixes, prefix)
		}
	}
	for _, action := range s.Action {
		switch {
		case action == "s3:GetObject" && objects.Any():
			of.Read, of.Prefixes = objects.Read, objects.Prefixes
		case action == "s3:ListBucket" && whole:
			of.List = true
		case action == location && whole && s.Effect == "Allow":
		default:
			return of, false
		}
	}
	return of, true
}

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
	add := func(sid, actions string, resources []string, condition string) {
		for i, r := range resources {
			resources[i] = "arn:aws:s3:::" + bucket + r
		}
		statements = append(statements, fmt.Sprintf(`{"Sid":%q,"Effect":"Allow","Principal":"*","Action":%s,"Resource":%s%s}`, sid, actions, policyList(resources), condition))
	}
	switch {
	case may.List && !may.Read && len(may.Prefixes) > 0:
		add("PublicLocation", `"s3:GetBucketLocation"`, []string{""}, "")
		add("PublicList", `"s3:ListBucket"`, []string{""}, fmt.Sprintf(`,"Condition":{"StringLike":{"s3:prefix":%s}}`, policyList(wild("", may.Prefixes))))
	case may.List:
		add("PublicList", `["s3:GetBucketLocation","s3:ListBucket"]`, []string{""}, "")
	}
	if may.Read {
		add("PublicRead", `"s3:GetObject"`, []string{"/*"}, "")
	} else if len(may.Prefixes) > 0 {
		add("PublicRead", `"s3:GetObject"`, wild("/", may.Prefixes), "")
	}
	return `{"Version":"2012-10-17","Statement":[` + strings.Join(statements, ",") + `]}`
}

// wild returns the patterns of what begins with the prefixes.
func wild(before string, prefixes []string) (patterns []string) {
	for _, p := range prefixes {
		patterns = append(patterns, before+p+"*")
	}
	return patterns
}

// policyList returns texts as a policy has them: one alone, or a list.
func policyList(texts []string) []byte {
	list, _ := json.Marshal(texts) // texts always can be
	if len(texts) == 1 {
		list = list[1 : len(list)-1]
	}
	return list
}

// publicRights returns what the statements of a policy let everybody do.
func publicRights(statements []policyStatement, bucket string) (may model.PublicRights, err error) {
	var denied model.PublicRights
	var listed []string // prefixes whose keys may be listed
	locates := false
	for _, s := range statements {
		of, prefixes, known := s.rights(bucket)
		if !known {
			return may, fail("NotImplemented", "A policy can let everybody (Principal *) s3:GetObject all objects of the bucket or those whose keys begin with a prefix (arn:aws:s3:::%s/PREFIX*), and s3:ListBucket (if only below prefixes, with the condition StringLike s3:prefix PREFIX* for each) and s3:GetBucketLocation of the bucket, or deny that. Other rights are scopes of keys.", bucket)
		}
		to := &may
		if s.Effect == "Deny" {
			to = &denied
		}
		locates, listed = locates || slices.Contains(s.Action, location), append(listed, prefixes...)
		to.Read, to.List, to.Prefixes = to.Read || of.Read, to.List || of.List, append(to.Prefixes, of.Prefixes...)
	}
	if may, err = without(may, denied); err == nil && !denied.List {
		may, err = withList(may, listed)
	}
	if err != nil {
		return model.PublicRights{}, err
	}
	if locates && !may.List {
		return model.PublicRights{}, fail("NotImplemented", "Everybody may s3:GetBucketLocation together with s3:ListBucket only.")
	}
	return may, nil
}

// withList returns the rights when everybody may also list the keys below prefixes. Those are then the same as the prefixes of
// objects that everybody may read: it is one list here.
func withList(may model.PublicRights, prefixes []string) (model.PublicRights, error) {
	switch {
	case may.List && len(may.Prefixes) > 0: // all keys
		return may, fail("NotImplemented", "Everybody may list the keys below the prefixes whose objects everybody may read only: give s3:ListBucket the condition StringLike s3:prefix with them.")
	case may.List || len(prefixes) == 0:
		return may, nil
	}
	prefixes, err := model.ValidatePublicPrefixes("s3:prefix", prefixes)
	if err != nil {
		return may, fail("NotImplemented", "%s", model.PublicMessage(err))
	}
	if may.Read || !slices.Equal(prefixes, may.Prefixes) {
		return may, fail("NotImplemented", "Everybody may list the keys (s3:prefix) below the prefixes whose objects everybody may read (s3:GetObject) only: name the same in both.")
	}
	may.List = true
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

// rights returns what the statement is about, false if that is something else than reading objects and listing keys. listed are
// prefixes: then only the keys below them may be listed. The location of a bucket, which is the same for all, may be told with them.
func (s policyStatement) rights(bucket string) (of model.PublicRights, listed []string, known bool) {
	listed, known = s.listedPrefixes()
	if !known {
		return of, nil, false
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
			return of, nil, false
		default:
			objects.Prefixes = append(objects.Prefixes, prefix)
		}
	}
	for _, action := range s.Action {
		switch {
		case action == "s3:ListBucket" && whole:
			of.List = len(listed) == 0
		case len(listed) > 0: // the condition would be of something else, too
			return of, nil, false
		case action == "s3:GetObject" && objects.Any():
			of.Read, of.Prefixes = objects.Read, objects.Prefixes
		case action == location && whole && s.Effect == "Allow":
		default:
			return of, nil, false
		}
	}
	return of, listed, true
}

// listedPrefixes returns the prefixes in the statement's condition, none if it has no condition, and false if it has another one.
func (s policyStatement) listedPrefixes() (prefixes []string, ok bool) {
	var condition map[string]map[string]conditionValues
	if len(s.Condition) > 0 && json.Unmarshal(s.Condition, &condition) != nil {
		return nil, false
	}
	for operator, keys := range condition {
		if len(condition) > 1 || len(keys) != 1 { // all of several conditions would have to hold
			return nil, false
		}
		for key, values := range keys {
			if s.Effect != "Allow" || !strings.EqualFold(key, "s3:prefix") || operator != "StringEquals" && operator != "StringLike" || len(values) == 0 {
				return nil, false
			}
			for _, value := range values {
				if operator == "StringLike" {
					value = strings.TrimSuffix(value, "*")
				}
				prefixes = append(prefixes, value)
			}
		}
	}
	return prefixes, true
}

package s3

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
)

// objectActions are the actions on objects. All others are on buckets.
func objectActions() []string {
	return []string{
		"AbortMultipartUpload", "BypassGovernanceRetention", "DeleteObject", "DeleteObjectTagging", "DeleteObjectVersion",
		"DeleteObjectVersionTagging", "GetObject", "GetObjectAcl", "GetObjectAttributes", "GetObjectLegalHold", "GetObjectRetention",
		"GetObjectTagging", "GetObjectTorrent", "GetObjectVersion", "GetObjectVersionAcl", "GetObjectVersionAttributes",
		"GetObjectVersionTagging", "ListMultipartUploadParts", "PutObject", "PutObjectAcl", "PutObjectLegalHold", "PutObjectRetention",
		"PutObjectTagging", "PutObjectVersionAcl", "PutObjectVersionTagging", "RestoreObject",
	}
}

// applies reports whether all that an action means, which may have * and ?, can be done with a resource of the statement.
func applies(action string, objects, buckets bool) bool {
	name := strings.TrimPrefix(action, "s3:")
	if name == "*" || objects && buckets {
		return true
	}
	isObject := slices.ContainsFunc(objectActions(), func(a string) bool {
		ok, err := path.Match(name, a)
		return err == nil && ok
	})
	return isObject && objects || !isObject && buckets
}

// conditionOperators are the comparisons of conditions. Each but Null may end in IfExists.
func conditionOperators() []string {
	return []string{
		"ArnEquals", "ArnLike", "ArnNotEquals", "ArnNotLike", "BinaryEquals", "Bool", "DateEquals", "DateGreaterThan",
		"DateGreaterThanEquals", "DateLessThan", "DateLessThanEquals", "DateNotEquals", "IpAddress", "NotIpAddress", "Null",
		"NumericEquals", "NumericGreaterThan", "NumericGreaterThanEquals", "NumericLessThan", "NumericLessThanEquals",
		"NumericNotEquals", "StringEquals", "StringEqualsIgnoreCase", "StringLike", "StringNotEquals",
		"StringNotEqualsIgnoreCase", "StringNotLike",
	}
}

func isConditionOperator(name string) bool {
	for _, of := range []string{"ForAllValues:", "ForAnyValue:"} {
		name = strings.TrimPrefix(name, of)
	}
	if plain, ok := strings.CutSuffix(name, "IfExists"); ok && plain != "Null" {
		name = plain
	}
	return slices.Contains(conditionOperators(), name)
}

// sourceAddress is the key whose values are addresses.
const sourceAddress = "aws:sourceip"

// conditionKeys are the keys that a condition may have, in lower case, with the actions they are about. No actions are all.
func conditionKeys() map[string][]string {
	keys := map[string][]string{sourceAddress: nil}
	for _, name := range []string{
		"CalledVia", "CurrentTime", "EpochTime", "MultiFactorAuthAge", "MultiFactorAuthPresent", "PrincipalAccount",
		"PrincipalArn", "PrincipalIsAWSService", "PrincipalOrgID", "PrincipalOrgPaths", "PrincipalServiceName", "PrincipalType",
		"Referer", "RequestedRegion", "ResourceAccount", "ResourceOrgID", "SecureTransport", "SourceAccount", "SourceArn",
		"SourceOrgID", "SourceVpc", "SourceVpce", "UserAgent", "UserId", "Username", "ViaAWSService", "VpcSourceIp",
	} {
		keys["aws:"+strings.ToLower(name)] = nil
	}
	lists := []string{"ListBucket", "ListBucketVersions"}
	for _, name := range []string{"Prefix", "Delimiter", "Max-Keys"} {
		keys["s3:"+strings.ToLower(name)] = lists
	}
	keys["s3:x-amz-acl"] = []string{"PutBucketAcl", "PutObject", "PutObjectAcl", "PutObjectVersionAcl"}
	keys["s3:versionid"] = []string{
		"DeleteObjectVersion", "DeleteObjectVersionTagging", "GetObjectVersion", "GetObjectVersionAcl",
		"GetObjectVersionAttributes", "GetObjectVersionTagging", "PutObjectVersionAcl", "PutObjectVersionTagging",
	}
	for _, name := range []string{
		"AccessPointNetworkOrigin", "AuthType", "DataAccessPointAccount", "DataAccessPointArn", "LocationConstraint",
		"Object-Lock-Legal-Hold", "Object-Lock-Mode", "Object-Lock-Remaining-Retention-Days", "Object-Lock-Retain-Until-Date",
		"RequestObjectTagKeys", "ResourceAccount", "SignatureAge", "SignatureVersion", "TlsVersion", "X-Amz-Content-Sha256",
		"X-Amz-Copy-Source", "X-Amz-Metadata-Directive", "X-Amz-Server-Side-Encryption",
		"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id", "X-Amz-Storage-Class", "X-Amz-Website-Redirect-Location",
	} {
		keys["s3:"+strings.ToLower(name)] = nil
	}
	return keys
}

// tagKeys are the beginnings of keys that end in the key of a tag.
var tagKeys = []string{"aws:principaltag/", "aws:requesttag/", "aws:resourcetag/", "s3:existingobjecttag/", "s3:requestobjecttag/"}

// validateCondition checks what S3 checks of a statement's condition, so that a mistake in one is told as such.
func validateCondition(condition json.RawMessage, actions []string) error {
	if len(condition) == 0 || bytes.HasPrefix(condition, []byte("null")) {
		return nil
	}
	var in map[string]map[string]conditionValues
	if err := json.Unmarshal(condition, &in); err != nil {
		return malformedPolicy("This policy contains invalid Json")
	}
	known := conditionKeys()
	for operator, of := range in {
		if !isConditionOperator(operator) {
			return malformedPolicy("Invalid Condition type : %s", operator)
		}
		for key, values := range of {
			key = strings.ToLower(key)
			about, ok := known[key]
			if !ok && !slices.ContainsFunc(tagKeys, func(start string) bool { return strings.HasPrefix(key, start) }) {
				return malformedPolicy("Policy has an invalid condition key")
			}
			if len(about) > 0 && slices.ContainsFunc(actions, func(a string) bool {
				return !strings.ContainsAny(a, "*?") && !slices.Contains(about, strings.TrimPrefix(a, "s3:"))
			}) {
				return malformedPolicy("Conditions do not apply to combination of actions and resources in statement")
			}
			if key == sourceAddress && slices.ContainsFunc(values, func(v string) bool { return !isNetwork(v) }) {
				return malformedPolicy("Invalid IP address in Conditions")
			}
		}
	}
	return nil
}

func isNetwork(text string) bool {
	_, err := netip.ParseAddr(text)
	if err != nil {
		_, err = netip.ParsePrefix(text)
	}
	return err == nil
}

// conditionValues are the values that a condition compares with.
type conditionValues []string

// UnmarshalJSON implements json.Unmarshaler.
func (v *conditionValues) UnmarshalJSON(text []byte) error {
	var all []any
	if json.Unmarshal(text, &all) != nil {
		var one any
		if err := json.Unmarshal(text, &one); err != nil {
			return err
		}
		all = []any{one}
	}
	for _, value := range all {
		switch value := value.(type) {
		case string:
			*v = append(*v, value)
		case bool:
			*v = append(*v, strconv.FormatBool(value))
		case float64:
			*v = append(*v, strconv.FormatFloat(value, 'f', -1, 64))
		default:
			return malformedPolicy("This policy contains invalid Json")
		}
	}
	return nil
}

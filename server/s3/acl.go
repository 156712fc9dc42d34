package s3

import (
	"encoding/xml"

	"holdfast/engine/model"
	"holdfast/server/s3/sigv4"
)

const (
	aclPrivate    = "private"
	aclPublicRead = "public-read"
	allUsers      = "http://acs.amazonaws.com/groups/global/AllUsers"
)

type grantee struct {
	Xsi  string `xml:"xmlns:xsi,attr"`
	Type string `xml:"xsi:type,attr"`
	ID   string `xml:",omitempty"`
	URI  string `xml:",omitempty"`
}

type grant struct {
	Grantee    grantee
	Permission string
}

// getACL shows who may use a bucket or its objects in the only form that some clients ask for. There are no ACLs: access
// is granted to keys, and to everybody who reads a public bucket's objects.
func (q *request) getACL() error {
	b, err := q.aclBucket()
	if err != nil {
		return err
	}
	const xsi = "http://www.w3.org/2001/XMLSchema-instance"
	grants := []grant{{grantee{Xsi: xsi, Type: "CanonicalUser", ID: q.Call.Organization}, "FULL_CONTROL"}}
	if q.isPublic(b) {
		grants = append(grants, grant{grantee{Xsi: xsi, Type: "Group", URI: allUsers}, "READ"})
	}
	return writeXML(q.Exchange, struct {
		XMLName xml.Name `xml:"AccessControlPolicy"`
		Xmlns   string   `xml:"xmlns,attr"`
		Owner   *owner
		Grants  []grant `xml:"AccessControlList>Grant"`
	}{Xmlns: namespace, Owner: q.owner(), Grants: grants})
}

// aclBucket returns the bucket whose ACL a request is about, or that of its object, which exists.
func (q *request) aclBucket() (model.Bucket, error) {
	b, err := q.findBucket()
	if err == nil && q.key != "" {
		_, err = q.engine.Objects.ObjectGet(q.Call, b.ID, q.key)
	}
	return b, err
}

// isPublic reports whether everybody may read the request's object, or all of the bucket if it has none.
func (q *request) isPublic(b model.Bucket) bool {
	return b.Public || q.key != "" && b.PublicRights().Reads(q.key)
}

// refuseACL refuses a canned ACL that says something else than what holds without ACLs: that an object is private, or
// that everybody may read one that everybody may read already.
func (q *request) refuseACL(canned string) error {
	switch canned {
	case aclPrivate, "bucket-owner-full-control", "bucket-owner-read":
		return nil
	case aclPublicRead:
		if b, err := q.findBucket(); err == nil && q.isPublic(b) {
			return nil
		}
		return notImplemented("X-Amz-Acl", "Access is granted to keys, not by ACLs; a bucket policy makes a bucket or a prefix public")
	case "public-read-write", "authenticated-read", "aws-exec-read", "log-delivery-write":
		return notImplemented("X-Amz-Acl", "Access is granted to keys, not by ACLs")
	}
	return invalidArgument("x-amz-acl", canned, "")
}

// putACL confirms an ACL that says what holds already, and refuses any other: there are none to set.
func (q *request) putACL() error {
	b, err := q.aclBucket()
	if err != nil {
		return err
	}
	canned := q.Request.Header.Get("X-Amz-Acl") // which is not refused
	if canned == "" {
		if canned, err = q.readACL(); err != nil {
			return err
		}
		if err := q.refuseACL(canned); err != nil {
			return err
		}
	}
	if canned == aclPrivate && q.isPublic(b) {
		return fail("NotImplemented", "Everybody may read this because the bucket's policy says so, and there are no ACLs: change the policy")
	}
	return nil
}

// readACL returns the canned ACL that says what the grants in the body say.
func (q *request) readACL() (string, error) {
	var in struct {
		Grants []struct {
			Grantee struct {
				ID  string
				URI string
			}
			Permission string
		} `xml:"AccessControlList>Grant"`
	}
	if some, err := q.readLooseXML(&in, maxXMLTags, sigv4.OfPayload); err != nil {
		return "", err
	} else if !some {
		return "", malformedXML()
	}
	canned := aclPrivate
	for _, g := range in.Grants {
		switch {
		case g.Grantee.ID == q.Call.Organization && g.Permission == "FULL_CONTROL":
		case g.Grantee.URI == allUsers && g.Permission == "READ":
			canned = aclPublicRead
		default:
			return "", fail("NotImplemented", "Access is granted to keys, not by ACLs: these grants cannot be given")
		}
	}
	return canned, nil
}

package s3

import "encoding/xml"

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
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if q.key != "" {
		if _, err := q.engine.Objects.ObjectGet(q.Call, b.ID, q.key); err != nil {
			return err
		}
	}
	const xsi = "http://www.w3.org/2001/XMLSchema-instance"
	grants := []grant{{grantee{Xsi: xsi, Type: "CanonicalUser", ID: q.Call.Organization}, "FULL_CONTROL"}}
	if b.Public || q.key != "" && b.PublicRights().Reads(q.key) {
		grants = append(grants, grant{grantee{Xsi: xsi, Type: "Group", URI: "http://acs.amazonaws.com/groups/global/AllUsers"}, "READ"})
	}
	return writeXML(q.Exchange, struct {
		XMLName xml.Name `xml:"AccessControlPolicy"`
		Xmlns   string   `xml:"xmlns,attr"`
		Owner   *owner
		Grants  []grant `xml:"AccessControlList>Grant"`
	}{Xmlns: namespace, Owner: q.owner(), Grants: grants})
}

package s3

import (
	"encoding/xml"
	"net/http"

	"holdfast/engine/model"
	"holdfast/server/s3/sigv4"
)

// maxPolicy is the maximum size of a policy document in bytes.
const maxPolicy = 20 << 10

// putPolicy says what everybody may do with a bucket: the only meaning that a policy has here.
func (q *request) putPolicy() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	text, err := q.readAll(maxPolicy, sigv4.OfPayload)
	if err != nil {
		return err
	}
	may, err := parsePolicy(text, b.Name)
	if err != nil {
		return err
	}
	err = q.configure(b, "policy", func(b *model.Bucket) error {
		if err := b.SetPublic(may); err != nil {
			return fail("AccessDenied", "Public policies are blocked by the public access block of this bucket.")
		}
		b.Policy = string(text)
		return nil
	})
	if err == nil {
		q.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (q *request) getPolicy() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	text := b.Policy
	if text == "" && b.PublicRights().Any() { // by the API
		text = publicPolicy(b.Name, b.PublicRights())
	}
	if text == "" {
		return fail("NoSuchBucketPolicy", "The bucket policy does not exist.")
	}
	q.Header().Set("Content-Type", "application/json")
	_, _ = q.Write([]byte(text)) // the client may have gone
	return nil
}

func (q *request) deletePolicy() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	err = q.configure(b, "policy", func(b *model.Bucket) error { b.Policy = ""; return b.SetPublic(model.PublicRights{}) })
	if err == nil {
		q.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (q *request) policyStatus() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if b.Policy == "" && !b.PublicRights().Any() {
		return fail("NoSuchBucketPolicy", "The bucket policy does not exist.")
	}
	return writeXML(q.Exchange, struct {
		XMLName  xml.Name `xml:"PolicyStatus"`
		Xmlns    string   `xml:"xmlns,attr"`
		IsPublic bool
	}{Xmlns: namespace, IsPublic: b.PublicRights().Any()})
}

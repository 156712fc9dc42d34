package s3

import (
	"encoding/xml"
	"net/http"
	"net/url"
	"strconv"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/gate"
	"holdfast/server/s3/sigv4"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// postResult is the response to a form that asks for a document.
type postResult struct {
	XMLName  xml.Name `xml:"PostResponse"`
	Xmlns    string   `xml:"xmlns,attr"`
	Location string
	Bucket   string
	Key      string
	ETag     string
}

// authenticateForm makes the key that signed the policy of a form the caller.
func (s *Server) authenticateForm(x *gate.Exchange, q *request) (err error) {
	if err := s.engine.Core.ByLink(x.Call); err != nil {
		return err
	}
	if q.form, err = readForm(x); err != nil {
		return err
	}
	signature, err := sigv4.ParseForm(q.form.fields, q.form.headers())
	if err != nil {
		return refused(err)
	}
	return s.authenticateKey(x, signature, signature.VerifyForm)
}

// postObject stores the file of an HTML form, as far as its policy allows it.
func (q *request) postObject() error {
	if q.form == nil { // it is signed like other requests
		return q.notAllowed(bucket)
	}
	var err error
	if q.key, err = q.form.key(); err != nil {
		return err
	}
	policy, err := parseFormPolicy(q.form.fields["policy"])
	if err != nil {
		return err
	}
	q.form.fields["bucket"], q.form.fields["key"] = q.bucket, q.key
	if err := policy.check(q.form.fields, q.engine.Core.Clock()); err != nil {
		return err
	}
	in, attributes, err := q.formUpload()
	if err != nil {
		return err
	}
	body, err := q.signature.Body(&bounded{source: q.form.file, least: policy.least, most: policy.most}, q.digest(q.Request.ContentLength), sigv4.OfPayload)
	if err != nil {
		return refused(err)
	}
	stored, err := q.store(in, attributes, &payload{body})
	if err != nil {
		return err
	}
	return q.answerForm(stored.Object)
}

// formUpload returns what a form stores, without its file.
func (q *request) formUpload() (in objects.Upload, a *model.Attributes, err error) {
	if err := q.form.checkMetadata(); err != nil {
		return in, nil, err
	}
	q.Request.Header = q.form.headers()
	if err := refuseHeaders(q.Exchange); err != nil {
		return in, nil, err
	}
	if in, a, err = q.upload(); err != nil {
		return in, nil, err
	}
	if text := q.form.fields["tagging"]; text != "" {
		var tags tagging
		if xml.Unmarshal([]byte(text), &tags) != nil {
			return in, nil, malformedXML()
		}
		in.Tags, err = tagSet(objectTagCount, tags.Tags, model.MaxObjectTags)
	}
	return in, a, err
}

// answerForm answers a form as its fields ask for it.
func (q *request) answerForm(o model.Object) error {
	q.writeChecksum(o)
	location := q.location()
	q.Header().Set("Location", location)
	to := q.form.fields["success_action_redirect"]
	if to == "" {
		to = q.form.fields["redirect"]
	}
	if u, err := url.Parse(to); err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" {
		query := u.Query()
		query.Set("bucket", q.bucket)
		query.Set("key", q.key)
		query.Set("etag", quoted(o.EntityTag()))
		u.RawQuery = query.Encode()
		q.Header().Set("Location", u.String())
		q.WriteHeader(http.StatusSeeOther)
		return nil
	}
	switch q.form.fields["success_action_status"] {
	case "200":
		q.WriteHeader(http.StatusOK)
	case "201":
		q.WriteHeader(http.StatusCreated)
		return writeXML(q.Exchange, postResult{Xmlns: namespace, Location: location, Bucket: q.bucket, Key: q.key, ETag: quoted(o.EntityTag())})
	default:
		q.WriteHeader(http.StatusNoContent)
	}
	return nil
}

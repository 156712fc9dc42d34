package s3

import (
	"cmp"
	"encoding/xml"
	"net/http"
	"slices"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

const namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

// timestamp formats a time in XML.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

type owner struct {
	ID          string
	DisplayName string
}

func (q *request) owner() *owner { return &owner{q.Call.Organization, q.Call.Organization} }

type listedBucket struct {
	Name         string
	CreationDate string
}

func (q *request) listBuckets() error {
	all, err := q.engine.Objects.Buckets(q.Call)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b model.Bucket) int { return cmp.Compare(a.Name, b.Name) })
	answer := struct {
		XMLName xml.Name `xml:"ListAllMyBucketsResult"`
		Xmlns   string   `xml:"xmlns,attr"`
		Owner   *owner
		Buckets []listedBucket `xml:"Buckets>Bucket"`
	}{Xmlns: namespace, Owner: q.owner(), Buckets: []listedBucket{}}
	for _, b := range all {
		answer.Buckets = append(answer.Buckets, listedBucket{b.Name, timestamp(b.CreatedAt)})
	}
	return writeXML(q.Exchange, answer)
}

func (q *request) createBucket() error {
	var in struct {
		LocationConstraint string
		Tags               *struct{}
	}
	if _, err := q.readXML(&in, sigv4.OfPayload); err != nil {
		return err
	}
	if in.LocationConstraint != "" && in.LocationConstraint != model.S3Region {
		return fail("InvalidLocationConstraint", "The specified location-constraint is not valid: the only region is %s", model.S3Region)
	}
	if in.Tags != nil {
		return fail("NotImplemented", "A parameter you provided implies functionality that is not implemented: Tags")
	}
	if err := model.ValidateBucketName("name", q.bucket); err != nil {
		return fail("InvalidBucketName", "The specified bucket is not valid.")
	}
	_, err := q.engine.Objects.BucketCreate(q.Call, objects.NewBucket{Name: q.bucket})
	if model.CodeOf(err) == model.CodeConflict {
		return fail("BucketAlreadyOwnedByYou", "Your previous request to create the named bucket succeeded and you already own it.")
	}
	if err != nil {
		return err
	}
	q.Header().Set("Location", "/"+q.bucket)
	q.Header().Set("X-Amz-Bucket-Arn", "arn:aws:s3:::"+q.bucket)
	return nil
}

func (q *request) headBucket() error {
	_, err := q.findBucket()
	if err == nil {
		q.Header().Set("X-Amz-Bucket-Region", model.S3Region)
	}
	return err
}

func (q *request) bucketLocation() error {
	if _, err := q.findBucket(); err != nil {
		return err
	}
	return writeXML(q.Exchange, struct { // empty for us-east-1
		XMLName xml.Name `xml:"LocationConstraint"`
		Xmlns   string   `xml:"xmlns,attr"`
	}{Xmlns: namespace})
}

// bucketVersioning answers that versions were never kept.
func (q *request) bucketVersioning() error {
	if _, err := q.findBucket(); err != nil {
		return err
	}
	return writeXML(q.Exchange, struct {
		XMLName xml.Name `xml:"VersioningConfiguration"`
		Xmlns   string   `xml:"xmlns,attr"`
	}{Xmlns: namespace})
}

func (q *request) deleteBucket() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	_, err = q.engine.Objects.BucketDelete(q.Call, b.ID, false)
	if model.CodeOf(err) == model.CodeConflict {
		return fail("BucketNotEmpty", "The bucket you tried to delete is not empty.")
	}
	if err == nil {
		q.WriteHeader(http.StatusNoContent)
	}
	return err
}

package s3

import (
	"cmp"
	"encoding/xml"
	"net/http"
	"slices"
	"strconv"
	"strings"
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
	BucketRegion string
	CreationDate string
}

func (q *request) listBuckets() error {
	limit, err := q.bucketLimit()
	if err != nil {
		return err
	}
	all, err := q.engine.Objects.Buckets(q.Call)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b model.Bucket) int { return cmp.Compare(a.Name, b.Name) })
	prefix, after := q.query.Get("prefix"), q.query.Get("continuation-token")
	answer := struct {
		XMLName           xml.Name `xml:"ListAllMyBucketsResult"`
		Xmlns             string   `xml:"xmlns,attr"`
		Owner             *owner
		Buckets           []listedBucket `xml:"Buckets>Bucket"`
		ContinuationToken string         `xml:",omitempty"`
		Prefix            string         `xml:",omitempty"`
	}{Xmlns: namespace, Owner: q.owner(), Buckets: []listedBucket{}, Prefix: prefix}
	for _, b := range all {
		if !strings.HasPrefix(b.Name, prefix) || b.Name <= after {
			continue
		}
		if len(answer.Buckets) == limit {
			answer.ContinuationToken = answer.Buckets[limit-1].Name
			break
		}
		answer.Buckets = append(answer.Buckets, listedBucket{b.Name, model.S3Region, timestamp(b.CreatedAt)})
	}
	return writeXML(q.Exchange, answer)
}

// maxBuckets is the maximum number of buckets in a page of the list.
const maxBuckets = 10_000

// bucketLimit returns the number of buckets that the client wants.
func (q *request) bucketLimit() (int, error) {
	text := q.query.Get("max-buckets")
	if text == "" {
		return maxBuckets, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxBuckets {
		return 0, invalidArgument("max-buckets", text, "Argument max-buckets must be an integer between 1 and %d.", maxBuckets)
	}
	return n, nil
}

func (q *request) createBucket() error {
	var in struct {
		LocationConstraint string
		Tags               []tag `xml:"Tags>Tag"`
	}
	if _, err := q.readLooseXML(&in, maxXMLTags, sigv4.OfPayload); err != nil {
		return err
	}
	if in.LocationConstraint != "" && in.LocationConstraint != model.S3Region {
		return fail("InvalidLocationConstraint", "The specified location-constraint is not valid").with("LocationConstraint", in.LocationConstraint)
	}
	tags, err := tagSet(bucketTagCount, in.Tags, model.MaxBucketTags)
	if err != nil {
		return err
	}
	if err := model.ValidateBucketName("name", q.bucket); err != nil {
		return fail("InvalidBucketName", "The specified bucket is not valid.")
	}
	_, err = q.engine.Objects.BucketCreate(q.Call, objects.NewBucket{
		Name: q.bucket, Tags: tags, Lock: strings.EqualFold(q.Request.Header.Get("X-Amz-Bucket-Object-Lock-Enabled"), "true"),
	})
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

func (q *request) deleteBucket() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	_, err = q.engine.Objects.BucketDelete(q.Call, b.ID, false)
	if model.CodeOf(err) == model.CodeConflict {
		if b.Versioning != "" {
			return fail("BucketNotEmpty", "The bucket you tried to delete is not empty. You must delete all versions in the bucket.")
		}
		return fail("BucketNotEmpty", "The bucket you tried to delete is not empty.")
	}
	if err == nil {
		q.WriteHeader(http.StatusNoContent)
	}
	return err
}

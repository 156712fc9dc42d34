package s3

import (
	"encoding/xml"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

type tag struct{ Key, Value string }

type tagging struct {
	XMLName xml.Name `xml:"Tagging"`
	Xmlns   string   `xml:"xmlns,attr"`
	Tags    []tag    `xml:"TagSet>Tag"`
}

// The names of the numbers of tags in a refusal.
const (
	objectTagCount = "Object tags"
	bucketTagCount = "Bucket tag count"
)

// tagSet checks a list of tags.
func tagSet(what string, tags []tag, most int) (map[string]string, error) {
	if len(tags) > most {
		return nil, fail("BadRequest", "%s cannot be greater than %d", what, most)
	}
	set := map[string]string{}
	for _, t := range tags {
		if !model.IsTagKey(t.Key) {
			return nil, fail("InvalidTag", "The TagKey you have provided is invalid")
		}
		if !model.IsTagValue(t.Value) {
			return nil, fail("InvalidTag", "The TagValue you have provided is invalid")
		}
		if _, twice := set[t.Key]; twice {
			return nil, fail("InvalidTag", "Cannot provide multiple Tags with the same key")
		}
		set[t.Key] = t.Value
	}
	return set, nil
}

// tagsOf reads the tags in a header.
func tagsOf(h http.Header) (map[string]string, error) {
	text := h.Get("X-Amz-Tagging")
	if text == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, malformedTags(text)
	}
	var tags []tag
	for key, all := range values {
		if key == "" || len(all) > 1 {
			return nil, malformedTags(text)
		}
		for _, value := range all {
			tags = append(tags, tag{key, value})
		}
	}
	return tagSet(objectTagCount, tags, model.MaxObjectTags)
}

func malformedTags(text string) error {
	return invalidArgument("x-amz-tagging", text, "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name duplicates.")
}

// readTags reads the document of a request.
func (q *request) readTags(what string, most int) (map[string]string, error) {
	var in tagging
	if some, err := q.readXML(&in, sigv4.OfPayload); err != nil {
		return nil, err
	} else if !some {
		return nil, malformedXML()
	}
	return tagSet(what, in.Tags, most)
}

func (q *request) writeTags(tags map[string]string) error {
	answer := tagging{Xmlns: namespace, Tags: []tag{}}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		answer.Tags = append(answer.Tags, tag{key, tags[key]})
	}
	return writeXML(q.Exchange, answer)
}

func (q *request) objectTags() error {
	b, name, err := q.named()
	if err != nil {
		return err
	}
	o, err := q.engine.Objects.VersionGet(q.Call, name.Bucket, name.Key, name.Version)
	if err != nil {
		return q.markedError(b, err)
	}
	q.describeVersion(b, o.Object)
	return q.writeTags(o.Tags)
}

func (q *request) setObjectTags() error {
	tags, err := q.readTags(objectTagCount, model.MaxObjectTags)
	if err != nil {
		return err
	}
	return q.tagObject(tags)
}

func (q *request) deleteObjectTags() error {
	if err := q.tagObject(nil); err != nil {
		return err
	}
	q.WriteHeader(http.StatusNoContent)
	return nil
}

func (q *request) tagObject(tags map[string]string) error {
	b, name, err := q.named()
	if err != nil {
		return err
	}
	if tags == nil {
		tags = map[string]string{}
	}
	if err := q.engine.Objects.ObjectUpdate(q.Call, name, objects.ObjectChange{Tags: tags}); err != nil {
		return q.markedError(b, err)
	}
	if name.Version != "" {
		q.Header().Set("X-Amz-Version-Id", name.Version)
	}
	return nil
}

func (q *request) bucketTags() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if len(b.Tags) == 0 {
		return fail("NoSuchTagSet", "The TagSet does not exist.")
	}
	return q.writeTags(b.Tags)
}

func (q *request) setBucketTags() error {
	tags, err := q.readTags(bucketTagCount, model.MaxBucketTags)
	if err == nil {
		err = q.tagBucket(tags)
	}
	if err == nil {
		q.WriteHeader(http.StatusNoContent)
	}
	return err
}

func (q *request) deleteBucketTags() error {
	if err := q.tagBucket(nil); err != nil {
		return err
	}
	q.WriteHeader(http.StatusNoContent)
	return nil
}

func (q *request) tagBucket(tags map[string]string) error {
	b, err := q.findBucket()
	if err == nil {
		_, err = q.engine.Objects.BucketUpdate(q.Call, b.ID, objects.BucketChange{Tags: &tags})
	}
	return err
}

package s3

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/model"
	"holdfast/server/s3/sigv4"
)

// deleting is the number of objects of one request that are deleted at the same time, so that they share syncs.
const deleting = 32

func (q *request) deleteObject() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	header := q.Request.Header
	allow := deleteCondition{header.Get("If-Match"), header.Get("X-Amz-If-Match-Last-Modified-Time"), header.Get("X-Amz-If-Match-Size")}.allow
	_, err = q.engine.Objects.ObjectDeleteIf(q.Request.Context(), q.Call, b.ID, q.key, allow)
	if err != nil && !q.isGone(err) {
		return err
	}
	q.WriteHeader(http.StatusNoContent)
	return nil
}

// deleteCondition is what an object to delete must be like; "" is no condition.
type deleteCondition struct{ etag, modified, size string }

func (c deleteCondition) allow(o model.Object) error {
	tag := strings.Trim(c.etag, `"`)
	if c.etag != "" && tag != "*" && tag != o.EntityTag() || c.size != "" && c.size != strconv.FormatInt(o.SizeBytes, 10) {
		return failedCondition()
	}
	if c.modified == "" {
		return nil
	}
	at, err := http.ParseTime(c.modified)
	if err != nil {
		at, err = time.Parse(time.RFC3339, c.modified)
	}
	if err != nil || !at.Equal(o.LastModified.Truncate(time.Second)) {
		return failedCondition()
	}
	return nil
}

func failedCondition() error {
	return fail("PreconditionFailed", "At least one of the pre-conditions you specified did not hold.")
}

// isGone reports whether a deletion failed because there is no such object, which is a success in S3.
func (q *request) isGone(err error) bool {
	return model.CodeOf(err) == model.CodeNotFound && q.Call.Resource.Type == model.ResourceObject
}

type deleteEntry struct {
	Key              string
	VersionID        string `xml:"VersionId"`
	ETag             string
	LastModifiedTime string
	Size             string
}

type deletedKey struct{ Key string }

type deleteError struct{ Key, Code, Message string }

func (q *request) deleteObjects() error {
	var in struct {
		XMLName xml.Name      `xml:"Delete"`
		Objects []deleteEntry `xml:"Object"`
		Quiet   bool
	}
	if some, err := q.readXML(&in, sigv4.OfPayload); err != nil {
		return err
	} else if !some || len(in.Objects) == 0 || len(in.Objects) > maxKeys {
		return malformedXML()
	}
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	errs := make([]*deleteError, len(in.Objects))
	var running sync.WaitGroup
	slots := make(chan struct{}, deleting)
	for i, entry := range in.Objects {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			errs[i] = q.deleteOne(b, entry)
		})
	}
	running.Wait()
	answer := struct {
		XMLName xml.Name `xml:"DeleteResult"`
		Xmlns   string   `xml:"xmlns,attr"`
		Deleted []deletedKey
		Error   []deleteError
	}{Xmlns: namespace}
	for i, entry := range in.Objects {
		if errs[i] != nil {
			answer.Error = append(answer.Error, *errs[i])
		} else if !in.Quiet {
			answer.Deleted = append(answer.Deleted, deletedKey{entry.Key})
		}
	}
	q.Call.Audited = true // each object was
	return writeXML(q.Exchange, answer)
}

// deleteOne deletes one object of a batch, with its own audit entry.
func (q *request) deleteOne(b model.Bucket, entry deleteEntry) *deleteError {
	if entry.VersionID != "" && entry.VersionID != "null" {
		return &deleteError{entry.Key, "NotImplemented", "Versions are not implemented"}
	}
	call := core.PartOf(q.Call, model.Resource{Type: model.ResourceObject, ID: b.ID, Name: entry.Key})
	_, err := q.engine.Objects.ObjectDeleteIf(q.Request.Context(), call, b.ID, entry.Key, deleteCondition{entry.ETag, entry.LastModifiedTime, entry.Size}.allow)
	q.engine.Core.Finish(call, err)
	if err == nil || model.CodeOf(err) == model.CodeNotFound && call.Resource.Type == model.ResourceObject {
		return nil
	}
	return &deleteError{entry.Key, codeOf(err, call.Resource.Type), model.PublicMessage(err)}
}

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
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

// deleting is the number of objects of one request that are deleted at the same time, so that they share syncs.
const deleting = 32

func (q *request) deleteObject() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	version, err := q.version()
	if err != nil {
		return err
	}
	header := q.Request.Header
	condition := deleteCondition{header.Get("If-Match"), header.Get("X-Amz-If-Match-Last-Modified-Time"), header.Get("X-Amz-If-Match-Size")}
	deleted, err := q.engine.Objects.ObjectDelete(q.Request.Context(), q.Call, objects.Deletion{
		Bucket: b.ID, Key: q.key, Version: version, Always: condition.acceptsNothing(), Bypass: q.bypasses(), Allow: condition.allow,
	})
	if err != nil && !(isGone(q.Call, err) && condition.acceptsNothing()) {
		return err
	}
	if version != "" && b.Versioning != model.VersioningOff {
		q.Header().Set("X-Amz-Version-Id", version)
	}
	q.describeVersion(b, deleted.Version)
	if deleted.Version.DeleteMarker {
		q.Header().Set("X-Amz-Delete-Marker", "true")
	}
	q.WriteHeader(http.StatusNoContent)
	return nil
}

// deleteCondition is what an object to delete must be like; "" is no condition.
type deleteCondition struct{ etag, modified, size string }

// acceptsNothing reports whether the deletion succeeds if there is no such object, as it does in S3 without If-Match.
func (c deleteCondition) acceptsNothing() bool { return c.etag == "" }

func (c deleteCondition) allow(o model.Object) error {
	tag := strings.Trim(c.etag, `"`)
	if c.etag != "" && tag != "*" && tag != o.EntityTag() {
		return failedCondition("If-Match")
	}
	if c.size != "" && c.size != strconv.FormatInt(o.SizeBytes, 10) {
		return failedCondition("x-amz-if-match-size")
	}
	if c.modified == "" {
		return nil
	}
	at, err := http.ParseTime(c.modified)
	if err != nil {
		at, err = time.Parse(time.RFC3339, c.modified)
	}
	if err != nil || !at.Equal(o.LastModified.Truncate(time.Second)) {
		return failedCondition("x-amz-if-match-last-modified-time")
	}
	return nil
}

// failedCondition names the condition that does not hold.
func failedCondition(name string) error {
	return fail("PreconditionFailed", "At least one of the pre-conditions you specified did not hold.").with("Condition", name)
}

// isGone reports whether a deletion failed because there is no such object.
func isGone(call *model.Call, err error) bool {
	return model.CodeOf(err) == model.CodeNotFound && call.Resource.Type == model.ResourceObject
}

type deleteEntry struct {
	Key              string
	VersionID        string `xml:"VersionId"`
	ETag             string
	LastModifiedTime string
	Size             string
}

type deletedKey struct {
	Key                   string
	VersionID             string `xml:"VersionId,omitempty"`
	DeleteMarker          *bool  `xml:",omitempty"` // nil where neither a version was named nor a delete marker made
	DeleteMarkerVersionID string `xml:"DeleteMarkerVersionId,omitempty"`
}

type deleteError struct {
	Key           string
	VersionID     string `xml:"VersionId,omitempty"`
	Code, Message string
}

type deleteResult struct {
	XMLName xml.Name `xml:"DeleteResult"`
	Xmlns   string   `xml:"xmlns,attr"`
	Deleted []deletedKey
	Error   []deleteError
}

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
	if denied := core.Permit(q.Call, model.OperationFor(model.ActionObjectDelete).Acts()); denied != nil {
		return q.denyDeletions(in.Objects, denied)
	}
	deleted, errs := make([]deletedKey, len(in.Objects)), make([]*deleteError, len(in.Objects))
	var running sync.WaitGroup
	slots := make(chan struct{}, deleting)
	for i, entry := range in.Objects {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			deleted[i], errs[i] = q.deleteOne(b, entry)
		})
	}
	running.Wait()
	answer := deleteResult{Xmlns: namespace}
	for i := range in.Objects {
		if errs[i] != nil {
			answer.Error = append(answer.Error, *errs[i])
		} else if !in.Quiet {
			answer.Deleted = append(answer.Deleted, deleted[i])
		}
	}
	q.Call.Audited = true // each object was
	return writeXML(q.Exchange, answer)
}

// denyDeletions refuses each deletion of a batch that the key may not make. They are one entry of the audit log.
func (q *request) denyDeletions(entries []deleteEntry, denied error) error {
	answer := deleteResult{Xmlns: namespace}
	for _, e := range entries {
		answer.Error = append(answer.Error, deleteError{e.Key, e.VersionID, codeOf(denied, model.ResourceObject), model.PublicMessage(denied)})
	}
	q.engine.Core.Finish(q.Call, denied)
	return writeXML(q.Exchange, answer)
}

// deleteOne deletes one object of a batch, with its own audit entry.
func (q *request) deleteOne(b model.Bucket, entry deleteEntry) (deletedKey, *deleteError) {
	call := core.PartOf(q.Call, model.Resource{Type: model.ResourceObject, ID: b.ID, Name: entry.Key})
	condition := deleteCondition{entry.ETag, entry.LastModifiedTime, entry.Size}
	deleted, err := objects.Deleted{}, error(nil)
	if entry.VersionID != "" {
		err = checkVersion(entry.VersionID)
	}
	if err == nil {
		deleted, err = q.engine.Objects.ObjectDelete(q.Request.Context(), call, objects.Deletion{
			Bucket: b.ID, Key: entry.Key, Version: entry.VersionID, Always: condition.acceptsNothing(), Bypass: q.bypasses(),
			Allow: condition.allow,
		})
	}
	q.engine.Core.Finish(call, err)
	if err != nil && !(isGone(call, err) && condition.acceptsNothing()) {
		return deletedKey{}, &deleteError{entry.Key, entry.VersionID, codeOf(err, call.Resource.Type), model.PublicMessage(err)}
	}
	done := deletedKey{Key: entry.Key, VersionID: entry.VersionID}
	if marker := deleted.Version.DeleteMarker; marker || entry.VersionID != "" {
		done.DeleteMarker = &marker
	}
	if deleted.Version.DeleteMarker {
		done.DeleteMarkerVersionID = deleted.Version.VersionID()
	}
	return done, nil
}

package s3

import (
	"encoding/xml"
	"errors"
	"net/http"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

// versioningStates are the states of a bucket and their names in the protocol.
func versioningStates() map[model.Versioning]string {
	return map[model.Versioning]string{model.VersioningEnabled: "Enabled", model.VersioningSuspended: "Suspended"}
}

func (q *request) bucketVersioning() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	return writeXML(q.Exchange, struct {
		XMLName xml.Name `xml:"VersioningConfiguration"`
		Xmlns   string   `xml:"xmlns,attr"`
		Status  string   `xml:",omitempty"`
	}{Xmlns: namespace, Status: versioningStates()[b.Versioning]})
}

type versioningChange struct {
	XMLName   xml.Name `xml:"VersioningConfiguration"`
	Status    string
	MFADelete string `xml:"MfaDelete"`
	// Extensions of MinIO.
	ExcludedPrefixes []struct{}
	ExcludeFolders   bool
}

// refuse refuses what would be dropped.
func (c versioningChange) refuse() error {
	what := ""
	switch {
	case c.MFADelete != "" && c.MFADelete != "Disabled":
		what = "MfaDelete"
	case len(c.ExcludedPrefixes) > 0:
		what = "ExcludedPrefixes"
	case c.ExcludeFolders:
		what = "ExcludeFolders"
	default:
		return nil
	}
	return fail("NotImplemented", "A parameter you provided implies functionality that is not implemented: %s", what)
}

func (q *request) setBucketVersioning() error {
	var in versioningChange
	if some, err := q.readXML(&in, sigv4.OfPayload); err != nil {
		return err
	} else if !some {
		return malformedXML()
	}
	if err := in.refuse(); err != nil {
		return err
	}
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	for state, name := range versioningStates() {
		if name == in.Status {
			_, err := q.engine.Objects.BucketUpdate(q.Call, b.ID, objects.BucketChange{Versioning: &state})
			return err
		}
	}
	return malformedXML()
}

// version returns the version that a request names, "" for none.
func (q *request) version() (string, error) {
	id := q.query.Get("versionId")
	if !q.query.Has("versionId") {
		return "", nil
	}
	return id, checkVersion(id)
}

func checkVersion(id string) error {
	if id == "" {
		return fail("InvalidArgument", "Version id cannot be the empty string")
	}
	if id != model.NullVersion && !model.IsVersion(id) {
		return fail("InvalidArgument", "Invalid version id specified")
	}
	return nil
}

// describeVersion names the version in the response, if the bucket has versions.
func (q *request) describeVersion(b model.Bucket, o model.Object) {
	if b.Versioning != model.VersioningOff && o.Version != "" {
		q.Header().Set("X-Amz-Version-Id", o.VersionID())
	}
}

// describeNewVersion is describeVersion for a version that the request has made. A null version is not named then.
func (q *request) describeNewVersion(o model.Object) {
	if o.Versioned {
		q.Header().Set("X-Amz-Version-Id", o.Version)
	}
}

// describeMarker names the delete marker that keeps an object from being read in the response, nil if there is another reason.
func (q *request) describeMarker(b model.Bucket, err error) *objects.DeletedError {
	deleted, ok := errors.AsType[*objects.DeletedError](err)
	if !ok {
		return nil
	}
	q.describeVersion(b, deleted.Marker)
	q.Header().Set("X-Amz-Delete-Marker", "true")
	return deleted
}

// versionError is the error for a request for an object that a delete marker keeps from being read.
func (q *request) versionError(b model.Bucket, err error) error {
	if deleted := q.describeMarker(b, err); deleted != nil && q.query.Has("versionId") {
		q.Header().Set("Last-Modified", deleted.Marker.LastModified.UTC().Format(http.TimeFormat))
		q.Header().Set("Allow", http.MethodDelete)
		return fail("MethodNotAllowed", "The specified method is not allowed against this resource.")
	}
	return err
}

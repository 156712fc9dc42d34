package s3

import (
	"encoding/xml"
	"errors"
	"net/http"
	"strings"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

// lockOf reads the lock that a request gives a new version, nil for none.
func (q *request) lockOf() (*model.ObjectLock, error) {
	mode := q.Request.Header.Get("X-Amz-Object-Lock-Mode")
	until := q.Request.Header.Get("X-Amz-Object-Lock-Retain-Until-Date")
	hold := q.Request.Header.Get("X-Amz-Object-Lock-Legal-Hold")
	if mode == "" && until == "" && hold == "" {
		return nil, nil
	}
	if (mode == "") != (until == "") {
		return nil, fail("InvalidArgument", "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied.")
	}
	lock := &model.ObjectLock{Hold: hold == "ON"}
	if hold != "" && hold != "ON" && hold != "OFF" {
		return nil, invalidArgument("x-amz-object-lock-legal-hold", hold, "Legal Hold must be either of 'ON' or 'OFF'")
	}
	if mode == "" {
		return lock, nil
	}
	var err error
	if lock.Mode, err = model.ParseLockMode("mode", mode); err != nil {
		return nil, invalidArgument("x-amz-object-lock-mode", mode, "Unknown wormMode directive.")
	}
	if lock.Until, err = time.Parse(time.RFC3339, until); err != nil {
		return nil, invalidArgument("x-amz-object-lock-retain-until-date", until, "The retain until date must be provided in ISO 8601 format")
	}
	if !lock.Until.After(q.engine.Core.LockClock()) {
		return nil, invalidArgument("x-amz-object-lock-retain-until-date", until, "The retain until date must be in the future!")
	}
	return lock, nil
}

// describeLock sets the headers of a version's lock.
func describeLock(h http.Header, o model.Object) {
	if l := o.Lock; l != nil {
		if l.Mode != "" {
			h.Set("X-Amz-Object-Lock-Mode", string(l.Mode))
			h.Set("X-Amz-Object-Lock-Retain-Until-Date", timestamp(l.Until))
		}
		h.Set("X-Amz-Object-Lock-Legal-Hold", onOff(l.Hold))
	}
}

func onOff(on bool) string {
	if on {
		return "ON"
	}
	return "OFF"
}

// bypasses reports whether a request asks to override governance.
func (q *request) bypasses() bool {
	return strings.EqualFold(q.Request.Header.Get("X-Amz-Bypass-Governance-Retention"), "true")
}

type lockConfiguration struct {
	XMLName           xml.Name `xml:"ObjectLockConfiguration"`
	Xmlns             string   `xml:"xmlns,attr"`
	ObjectLockEnabled string
	Rule              *lockRule
}

type lockRule struct {
	DefaultRetention struct {
		Mode  string
		Days  int `xml:",omitempty"`
		Years int `xml:",omitempty"`
	}
}

func (q *request) bucketLock() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if b.Lock == nil {
		return fail("ObjectLockConfigurationNotFoundError", "Object Lock configuration does not exist for this bucket.")
	}
	answer := lockConfiguration{Xmlns: namespace, ObjectLockEnabled: "Enabled"}
	if b.Lock.Mode != "" {
		answer.Rule = &lockRule{}
		d := &answer.Rule.DefaultRetention
		d.Mode, d.Days, d.Years = string(b.Lock.Mode), b.Lock.Days, b.Lock.Years
	}
	return writeXML(q.Exchange, answer)
}

func (q *request) setBucketLock() error {
	var in lockConfiguration
	if some, err := q.readXML(&in, sigv4.OfPayload); err != nil {
		return err
	} else if !some {
		return fail("MissingRequestBodyError", "Request Body is empty")
	} else if in.ObjectLockEnabled != "Enabled" {
		return malformedXML()
	}
	lock := model.BucketLock{}
	if in.Rule != nil {
		d := in.Rule.DefaultRetention
		var err error
		if lock.Mode, err = model.ParseLockMode("mode", d.Mode); err != nil || (d.Days == 0) == (d.Years == 0) {
			return malformedXML()
		}
		if d.Days < 0 || d.Years < 0 {
			return fail("InvalidArgument", "Default retention period must be a positive integer value.")
		}
		if d.Days > model.MaxLockDays || d.Years > model.MaxLockDays/365 {
			return fail("InvalidArgument", "Default retention period too large.")
		}
		lock.Days, lock.Years = d.Days, d.Years
	}
	b, err := q.findBucket()
	if err == nil {
		_, err = q.engine.Objects.BucketUpdate(q.Call, b.ID, objects.BucketChange{Lock: &lock})
	}
	return err
}

type retention struct {
	XMLName         xml.Name `xml:"Retention"`
	Xmlns           string   `xml:"xmlns,attr"`
	Mode            string   `xml:",omitempty"`
	RetainUntilDate string   `xml:",omitempty"`
}

type legalHold struct {
	XMLName xml.Name `xml:"LegalHold"`
	Xmlns   string   `xml:"xmlns,attr"`
	Status  string
}

// named returns the version that a request is about.
func (q *request) named() (model.Bucket, objects.VersionName, error) {
	b, err := q.findBucket()
	if err != nil {
		return b, objects.VersionName{}, err
	}
	name := objects.VersionName{Bucket: b.ID, Key: q.key}
	if q.query.Get("versionId") != "" { // an empty one is none here
		name.Version, err = q.version()
	}
	return b, name, err
}

// markedError is versionError for requests about what is stored with a version: a delete marker has nothing.
func (q *request) markedError(b model.Bucket, err error) error {
	if _, ok := errors.AsType[*objects.DeletedError](err); ok {
		_ = q.versionError(b, err)
		return fail("MethodNotAllowed", "The specified method is not allowed against this resource.")
	}
	return err
}

// lockRecord returns the lock of the version that a request is about.
func (q *request) lockRecord() (*model.ObjectLock, error) {
	b, name, err := q.named()
	if err != nil {
		return nil, err
	}
	o, err := q.engine.Objects.VersionGet(q.Call, name.Bucket, name.Key, name.Version)
	if err != nil {
		return nil, q.markedError(b, err)
	}
	if b.Lock == nil {
		return nil, fail("InvalidRequest", "Bucket is missing Object Lock Configuration")
	}
	if o.Lock == nil {
		return nil, noObjectLock()
	}
	return o.Lock, nil
}

func noObjectLock() error {
	return fail("NoSuchObjectLockConfiguration", "The specified object does not have a ObjectLock configuration.")
}

func (q *request) objectRetention() error {
	lock, err := q.lockRecord()
	if err != nil {
		return err
	}
	if lock.Mode == "" {
		return noObjectLock()
	}
	return writeXML(q.Exchange, retention{Xmlns: namespace, Mode: string(lock.Mode), RetainUntilDate: timestamp(lock.Until)})
}

func (q *request) setObjectRetention() error {
	b, name, err := q.named()
	if err != nil {
		return err
	}
	var in retention
	if some, err := q.readXML(&in, sigv4.OfPayload); err != nil {
		return err
	} else if !some || (in.Mode == "") != (in.RetainUntilDate == "") {
		return malformedXML()
	}
	var until time.Time
	if in.Mode != "" {
		if _, err = model.ParseLockMode("mode", in.Mode); err != nil {
			return malformedXML()
		}
		if until, err = time.Parse(time.RFC3339, in.RetainUntilDate); err != nil {
			return malformedXML()
		}
		if !until.After(q.engine.Core.LockClock()) {
			return fail("InvalidArgument", "The retain until date must be in the future!")
		}
	}
	return q.markedError(b, q.engine.Objects.ObjectUpdate(q.Call, name, objects.ObjectChange{
		Retention: &objects.Retention{Mode: model.LockMode(in.Mode), Until: until}, Bypass: q.bypasses(),
	}))
}

func (q *request) objectHold() error {
	lock, err := q.lockRecord()
	if err != nil {
		return err
	}
	return writeXML(q.Exchange, legalHold{Xmlns: namespace, Status: onOff(lock.Hold)})
}

func (q *request) setObjectHold() error {
	b, name, err := q.named()
	if err != nil {
		return err
	}
	var in legalHold
	if some, err := q.readXML(&in, sigv4.OfPayload); err != nil {
		return err
	} else if !some || in.Status != "ON" && in.Status != "OFF" {
		return malformedXML()
	}
	return q.markedError(b, q.engine.Objects.ObjectUpdate(q.Call, name, objects.ObjectChange{Hold: new(in.Status == "ON")}))
}

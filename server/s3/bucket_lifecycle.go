package s3

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

// lifecycle are the rules of a bucket's lifecycle. They say one thing here: the age at which objects are removed.
type lifecycle struct {
	XMLName xml.Name        `xml:"LifecycleConfiguration"`
	Xmlns   string          `xml:"xmlns,attr"`
	Rules   []lifecycleRule `xml:"Rule"`
}

type lifecycleRule struct {
	ID         string `xml:",omitempty"`
	Status     string
	Prefix     *string              `xml:",omitempty"` // in older documents, in place of Filter
	Filter     *lifecycleFilter     `xml:",omitempty"`
	Expiration *lifecycleExpiration `xml:",omitempty"`
	Abort      *lifecycleAbort      `xml:"AbortIncompleteMultipartUpload,omitempty"`

	Transition                  *struct{} `xml:",omitempty"`
	NoncurrentVersionExpiration *struct{} `xml:",omitempty"`
	NoncurrentVersionTransition *struct{} `xml:",omitempty"`
}

type lifecycleFilter struct {
	Prefix                string
	Tag                   *struct{} `xml:",omitempty"`
	And                   *struct{} `xml:",omitempty"`
	ObjectSizeGreaterThan *int64    `xml:",omitempty"`
	ObjectSizeLessThan    *int64    `xml:",omitempty"`
}

type lifecycleExpiration struct {
	Days                      int     `xml:",omitempty"`
	Date                      *string `xml:",omitempty"`
	ExpiredObjectDeleteMarker *bool   `xml:",omitempty"`
}

type lifecycleAbort struct{ DaysAfterInitiation int }

const (
	maxLifecycleRules = 100 // S3 has 1000, but rules for parts of a bucket, too
	maxRuleID         = 255 // bytes
)

// abortDays is the age at which multipart uploads without a new part are aborted, in days.
const abortDays = int(objects.MultipartLife / (24 * time.Hour))

func (q *request) putLifecycle() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	var in lifecycle
	if some, err := q.readXML(&in, sigv4.OfPayload); err != nil {
		return err
	} else if !some || len(in.Rules) == 0 {
		return malformedXML()
	}
	if err := in.name(); err != nil {
		return err
	}
	days := 0
	for _, r := range in.Rules {
		if err := r.validate(); err != nil {
			return err
		}
		if r.Status == "Enabled" && r.Expiration != nil && (days == 0 || r.Expiration.Days < days) {
			days = r.Expiration.Days
		}
	}
	in.XMLName, in.Xmlns = xml.Name{}, namespace // as it is answered
	text, err := xml.Marshal(in)
	if err != nil {
		return fmt.Errorf("keep lifecycle: %w", err)
	}
	_, err = q.engine.Objects.BucketUpdate(q.Call, b.ID, objects.BucketChange{ExpireAfterDays: &days, Lifecycle: string(text)})
	return err
}

// name checks the rules' number and IDs, and gives an ID to those without.
func (l *lifecycle) name() error {
	if len(l.Rules) > maxLifecycleRules {
		return fail("InvalidRequest", "A lifecycle has at most %d rules", maxLifecycleRules)
	}
	ids := map[string]bool{}
	for i := range l.Rules {
		r := &l.Rules[i]
		if r.ID == "" {
			r.ID = fmt.Sprintf("rule-%d", i+1)
		}
		if len(r.ID) > maxRuleID {
			return fail("InvalidArgument", "ID length should not exceed allowed limit of %d", maxRuleID)
		}
		if ids[r.ID] {
			return fail("InvalidArgument", "Rule ID must be unique. Found same ID for more than one rule")
		}
		ids[r.ID] = true
	}
	return nil
}

// validate refuses what is not done with objects here.
func (r lifecycleRule) validate() error {
	refuse := func(what string) error {
		return fail("NotImplemented", "A lifecycle rule can remove all objects of a bucket at an age in days; %s is not implemented", what)
	}
	f := r.Filter
	switch {
	case r.Status != "Enabled" && r.Status != "Disabled", r.Expiration == nil && r.Abort == nil && r.Transition == nil && r.NoncurrentVersionExpiration == nil && r.NoncurrentVersionTransition == nil:
		return malformedXML()
	case r.Transition != nil || r.NoncurrentVersionTransition != nil:
		return refuse("Transition: there is one storage class")
	case r.NoncurrentVersionExpiration != nil:
		return refuse("NoncurrentVersionExpiration")
	case r.Prefix != nil && *r.Prefix != "", f != nil && (f.Prefix != "" || f.Tag != nil || f.And != nil || f.ObjectSizeGreaterThan != nil || f.ObjectSizeLessThan != nil):
		return refuse("a Filter")
	case r.Expiration != nil && (r.Expiration.Date != nil || r.Expiration.ExpiredObjectDeleteMarker != nil):
		return refuse("an Expiration other than by Days")
	case r.Expiration != nil && (r.Expiration.Days < 1 || r.Expiration.Days > model.MaxExpireDays):
		return fail("InvalidArgument", "'Days' for Expiration action must be from 1 to %d", model.MaxExpireDays)
	case r.Abort != nil && r.Abort.DaysAfterInitiation != abortDays:
		return refuse("AbortIncompleteMultipartUpload after other than 7 days without a new part")
	}
	return nil
}

func (q *request) getLifecycle() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	if b.Lifecycle != "" {
		var kept lifecycle
		if err := xml.Unmarshal([]byte(b.Lifecycle), &kept); err != nil {
			return fmt.Errorf("read lifecycle of %s: %w", b.ID, err)
		}
		kept.XMLName, kept.Xmlns = xml.Name{}, namespace
		return writeXML(q.Exchange, kept)
	}
	if b.ExpireAfterDays == 0 {
		return fail("NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist")
	}
	return writeXML(q.Exchange, lifecycle{Xmlns: namespace, Rules: []lifecycleRule{
		{ID: "expire_after_days", Status: "Enabled", Filter: &lifecycleFilter{}, Expiration: &lifecycleExpiration{Days: b.ExpireAfterDays}},
	}})
}

func (q *request) deleteLifecycle() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	_, err = q.engine.Objects.BucketUpdate(q.Call, b.ID, objects.BucketChange{ExpireAfterDays: new(int)})
	if err == nil {
		q.WriteHeader(http.StatusNoContent)
	}
	return err
}

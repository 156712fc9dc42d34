package s3

import (
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"holdfast/engine/model"
	"holdfast/engine/objects"
	"holdfast/server/s3/sigv4"
)

// lifecycle are the rules of a bucket's lifecycle: the age at which objects and versions are removed.
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

	Noncurrent *noncurrentExpiration `xml:"NoncurrentVersionExpiration,omitempty"`

	Transition                  *struct{} `xml:",omitempty"`
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

type noncurrentExpiration struct {
	NoncurrentDays          int
	NewerNoncurrentVersions *int `xml:",omitempty"`
}

type lifecycleAbort struct{ DaysAfterInitiation int }

const (
	maxLifecycleRules = 100 // S3 has 1000
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
	expiry, err := in.expiry()
	if err != nil {
		return err
	}
	in.XMLName, in.Xmlns = xml.Name{}, namespace // as it is answered
	text, err := xml.Marshal(in)
	if err != nil {
		return fmt.Errorf("keep lifecycle: %w", err)
	}
	if len(text) > model.MaxExpiryBytes {
		return fail("InvalidRequest", "The rules take %d bytes, and may take %d: shorten their IDs and prefixes, or remove some", len(text), model.MaxExpiryBytes)
	}
	_, err = q.engine.Objects.BucketUpdate(q.Call, b.ID, objects.BucketChange{Expiry: &expiry, Lifecycle: string(text)})
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

// expiry returns what the rules that are enabled do with objects.
func (l *lifecycle) expiry() (model.Expiry, error) {
	of := map[string]model.ExpiryRule{} // by prefix
	for _, r := range l.Rules {
		if err := r.validate(); err != nil {
			return nil, err
		}
		if r.Status != "Enabled" {
			continue
		}
		rule := of[r.prefix()]
		rule.Prefix = r.prefix()
		if r.Expiration != nil {
			rule.Days = shorter(rule.Days, r.Expiration.Days)
		}
		if r.Noncurrent != nil {
			rule.NoncurrentDays = shorter(rule.NoncurrentDays, r.Noncurrent.NoncurrentDays)
		}
		if rule.Days > 0 || rule.NoncurrentDays > 0 {
			of[rule.Prefix] = rule
		}
	}
	expiry := model.Expiry(slices.Collect(maps.Values(of)))
	for _, r := range l.Rules {
		if r.Status == "Enabled" && r.removesMarkers() && expiry.NoncurrentLife(r.prefix()) == 0 {
			return nil, fail("NotImplemented", "ExpiredObjectDeleteMarker is implemented with a NoncurrentVersionExpiration for the same objects, which removes such delete markers, too; add one")
		}
	}
	return expiry, nil
}

// says reports whether the document means these rules. An earlier build kept an age in their place, which holds no longer.
func (l *lifecycle) says(rules model.Expiry) bool {
	expiry, err := l.expiry()
	if err == nil {
		expiry, err = model.ValidateExpiry("", expiry)
	}
	return err == nil && slices.Equal(expiry, rules)
}

// shorter returns the smaller of two numbers of days, of which 0 means for ever.
func shorter(a, b int) int {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// prefix returns what the keys begin with that the rule is about.
func (r lifecycleRule) prefix() string {
	switch {
	case r.Filter != nil:
		return r.Filter.Prefix
	case r.Prefix != nil:
		return *r.Prefix
	}
	return ""
}

// removesMarkers reports whether the rule asks to remove delete markers without other versions.
func (r lifecycleRule) removesMarkers() bool {
	return r.Expiration != nil && r.Expiration.ExpiredObjectDeleteMarker != nil && *r.Expiration.ExpiredObjectDeleteMarker
}

// validate refuses what is not done with objects here.
func (r lifecycleRule) validate() error {
	refuse := func(what string) error {
		return fail("NotImplemented", "A lifecycle rule can remove the objects of a bucket or with a prefix at an age in days, and noncurrent versions; %s is not implemented", what)
	}
	days := func(name string, days int) error {
		if days < 1 || days > model.MaxExpireDays {
			return fail("InvalidArgument", "'%s' must be from 1 to %d", name, model.MaxExpireDays)
		}
		return nil
	}
	f := r.Filter
	switch {
	case r.Status != "Enabled" && r.Status != "Disabled", r.Expiration == nil && r.Abort == nil && r.Transition == nil && r.Noncurrent == nil && r.NoncurrentVersionTransition == nil,
		r.Filter != nil && r.Prefix != nil:
		return malformedXML()
	case r.Transition != nil || r.NoncurrentVersionTransition != nil:
		return refuse("Transition: there is one storage class")
	case r.Noncurrent != nil && r.Noncurrent.NewerNoncurrentVersions != nil:
		return refuse("NewerNoncurrentVersions")
	case f != nil && (f.Tag != nil || f.And != nil || f.ObjectSizeGreaterThan != nil || f.ObjectSizeLessThan != nil):
		return refuse("a Filter other than by Prefix")
	case r.Expiration != nil && r.Expiration.Date != nil:
		return refuse("an Expiration by Date")
	case r.removesMarkers() && r.Expiration.Days != 0:
		return malformedXML()
	case r.Abort != nil && r.Abort.DaysAfterInitiation != abortDays:
		return refuse("AbortIncompleteMultipartUpload after other than 7 days without a new part")
	}
	if prefix := r.prefix(); prefix != "" { // also of a rule that removes nothing: it is kept
		if err := model.ValidateObjectKey("Prefix", prefix); err != nil {
			return err
		}
	}
	if r.Expiration != nil && !r.removesMarkers() {
		if err := days("Days", r.Expiration.Days); err != nil {
			return err
		}
	}
	if r.Noncurrent != nil {
		return days("NoncurrentDays", r.Noncurrent.NoncurrentDays)
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
		if kept.says(b.Expiry) {
			kept.XMLName, kept.Xmlns = xml.Name{}, namespace
			return writeXML(q.Exchange, kept)
		}
	}
	if len(b.Expiry) == 0 {
		return fail("NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist")
	}
	out := lifecycle{Xmlns: namespace}
	for i, r := range b.Expiry {
		rule := lifecycleRule{ID: fmt.Sprintf("rule-%d", i+1), Status: "Enabled", Filter: &lifecycleFilter{Prefix: r.Prefix}}
		if r.Days > 0 {
			rule.Expiration = &lifecycleExpiration{Days: r.Days}
		}
		if r.NoncurrentDays > 0 {
			rule.Noncurrent = &noncurrentExpiration{NoncurrentDays: r.NoncurrentDays}
		}
		out.Rules = append(out.Rules, rule)
	}
	return writeXML(q.Exchange, out)
}

func (q *request) deleteLifecycle() error {
	b, err := q.findBucket()
	if err != nil {
		return err
	}
	_, err = q.engine.Objects.BucketUpdate(q.Call, b.ID, objects.BucketChange{Expiry: new(model.Expiry)})
	if err == nil {
		q.WriteHeader(http.StatusNoContent)
	}
	return err
}

package model

import (
	"regexp"
	"slices"
	"time"
	"unicode/utf8"
)

// LockMode says who may remove a version before its time.
type LockMode string

// The modes of Object Lock. Governance yields to callers with every permission who ask for it, compliance to nobody.
const (
	LockGovernance LockMode = "GOVERNANCE"
	LockCompliance LockMode = "COMPLIANCE"
)

// ParseLockMode parses the text of the input named field as a LockMode.
func ParseLockMode(field, text string) (LockMode, error) {
	mode := LockMode(text)
	if !slices.Contains([]LockMode{LockGovernance, LockCompliance}, mode) {
		return "", Invalid(field, "must be %s or %s", LockGovernance, LockCompliance)
	}
	return mode, nil
}

// ObjectLock keeps a version from being removed.
type ObjectLock struct {
	Mode  LockMode  `json:"mode,omitempty"` // "" without retention
	Until time.Time `json:"until,omitzero"`
	// Hold keeps the version until it is taken away.
	Hold bool `json:"hold,omitempty"`
}

// Retains reports whether the version is retained at a time, apart from a hold.
func (l *ObjectLock) Retains(at time.Time) bool {
	return l != nil && l.Mode != "" && l.Until.After(at)
}

// BucketLock means that versions of the bucket can be locked. It may have a retention for new versions.
type BucketLock struct {
	Mode  LockMode `json:"mode,omitempty"` // "" without one
	Days  int      `json:"days,omitempty"`
	Years int      `json:"years,omitempty"`
}

// Validate checks the retention of new versions.
func (l BucketLock) Validate(field string) error {
	switch {
	case l.Mode == "" && (l.Days != 0 || l.Years != 0):
		return Invalid(field, "must have a mode with its days or years")
	case l.Mode == "":
		return nil
	case (l.Days == 0) == (l.Years == 0):
		return Invalid(field, "must have days or years, and not both")
	case l.Days < 0 || l.Years < 0 || l.Days > MaxLockDays || l.Years > MaxLockDays/365:
		return Invalid(field, "must be at most %d days or %d years", MaxLockDays, MaxLockDays/365)
	}
	_, err := ParseLockMode(field+".mode", string(l.Mode))
	return err
}

// Until returns until when a version is retained that is made at a time.
func (l BucketLock) Until(at time.Time) time.Time { return at.AddDate(l.Years, 0, l.Days) }

// MaxLockDays is the longest retention in days.
const MaxLockDays = 36500

// The limits of tags.
const (
	MaxObjectTags = 10
	MaxBucketTags = 50
	MaxTagKey     = 128 // characters
	MaxTagValue   = 256
)

var tagText = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`)

// IsTagKey reports whether text can be the key of a tag.
func IsTagKey(text string) bool {
	return text != "" && utf8.RuneCountInString(text) <= MaxTagKey && tagText.MatchString(text)
}

// IsTagValue reports whether text can be the value of a tag.
func IsTagValue(text string) bool {
	return utf8.RuneCountInString(text) <= MaxTagValue && tagText.MatchString(text)
}

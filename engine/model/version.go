package model

import "regexp"

// Versioning says whether a bucket keeps versions that are overwritten or deleted.
type Versioning string

// The states of a bucket. Versions were never kept in one without versioning; a suspended one still has those it kept.
const (
	VersioningOff       Versioning = ""
	VersioningEnabled   Versioning = "enabled"
	VersioningSuspended Versioning = "suspended"
)

// NullVersion is the id of the version of a key that was made while its bucket kept no versions.
const NullVersion = "null"

// VersionID returns the id by which clients name the version.
func (o Object) VersionID() string {
	if o.Versioned {
		return o.Version
	}
	return NullVersion
}

// IsVersion reports whether text has the form of a version's id, in lower or upper case.
func IsVersion(text string) bool { return versionID.MatchString(text) }

var versionID = regexp.MustCompile(`^(?i)[0-7][0-9a-hjkmnp-tv-z]{25}$`)

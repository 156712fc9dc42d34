package model

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

package model

import "time"

// BucketRestoreStatus is the state of a BucketRestore.
type BucketRestoreStatus string

// The states of a restore of a bucket.
const (
	BucketRestoreRunning   BucketRestoreStatus = "running"
	BucketRestoreCompleted BucketRestoreStatus = "completed"
	BucketRestoreFailed    BucketRestoreStatus = "failed"
)

// BucketRestore brings the objects of a bucket back to a moment. Its record is the plan: a start continues it where the
// last transaction left it. A bucket has the record of its newest restore.
type BucketRestore struct {
	Bucket       string              `json:"bucket"`
	Organization string              `json:"organization"`
	Target       time.Time           `json:"target"`
	Status       BucketRestoreStatus `json:"status"`
	// StartedAt also separates what clients wrote before, which the restore replaces, from what they wrote since.
	StartedAt   time.Time `json:"started_at"`
	CompletedAt time.Time `json:"completed_at,omitzero"`
	// After is the last key that is done, apart from Copies.
	After string `json:"after,omitempty"`
	// Copies are the versions that are still to be copied to become the latest.
	Copies []VersionCopy `json:"copies,omitempty"`
	// Rows is how many versions there were in the bucket and in the trash at the start, RowsDone how many were seen.
	Rows     int64              `json:"rows"`
	RowsDone int64              `json:"rows_done"`
	Counts   BucketRestoreCount `json:"counts"`
	// Partial means that this is a plan that was not finished: the counts are of the first keys only.
	Partial bool   `json:"partial,omitempty"`
	Error   string `json:"error,omitempty"`
}

// VersionCopy makes a version the latest of its key again, while Latest is: otherwise a client has written since.
type VersionCopy struct {
	Key     string `json:"key"`
	Version string `json:"version"`
	Latest  string `json:"latest"`
}

// BucketRestoreCount counts the keys of a bucket by what a restore does with them.
type BucketRestoreCount struct {
	Restored  int64 `json:"restored"`  // other content, or no object
	Removed   int64 `json:"removed"`   // objects that did not exist at the moment
	Unchanged int64 `json:"unchanged"` // as they were
	Skipped   int64 `json:"skipped"`   // written since the start, expired, locked or damaged
	// Bytes is the size of the restored objects.
	Bytes int64 `json:"bytes"`
}

// Add adds o.
func (c *BucketRestoreCount) Add(o BucketRestoreCount) {
	c.Restored += o.Restored
	c.Removed += o.Removed
	c.Unchanged += o.Unchanged
	c.Skipped += o.Skipped
	c.Bytes += o.Bytes
}

// Absence is a time in which a version was not in its bucket, because it was in the trash.
type Absence struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// MaxAbsences is how many absences a version remembers.
const MaxAbsences = 8

// ExistedAt reports whether the version was in its bucket at a moment, if it has not been in the trash since.
func (o Object) ExistedAt(at time.Time) bool {
	if o.LastModified.After(at) {
		return false
	}
	for _, a := range o.Absences {
		if !at.Before(a.From) && at.Before(a.Until) {
			return false
		}
	}
	return true
}

// Percent returns how far the restore is.
func (r BucketRestore) Percent() int {
	if r.Status == BucketRestoreCompleted {
		return 100
	}
	return int(min(99, 100*r.RowsDone/max(r.Rows, 1)))
}

// Origin returns the version of the key whose content this one has, which is another one if a restore of the bucket copied it.
func (o Object) Origin() string {
	if o.CopyOf != "" {
		return o.CopyOf
	}
	return o.Version
}

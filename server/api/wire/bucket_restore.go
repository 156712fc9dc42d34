package wire

import "time"

// BucketHistory says to which moments a bucket can be brought back.
type BucketHistory struct {
	BucketID               string         `json:"bucket_id"`
	EarliestRestorableTime *time.Time     `json:"earliest_restorable_time" doc:"Null if what is replaced or deleted is not kept: the operator has not set --object-trash-retention, and the bucket's versioning is not on."`
	Restore                *BucketRestore `json:"restore" doc:"The newest one; null if there was none."`
}

// BucketRestore is a restore of a bucket to a moment, or the plan of one.
type BucketRestore struct {
	DryRun           bool                `json:"dry_run"`
	BucketID         string              `json:"bucket_id"`
	TargetTime       time.Time           `json:"target_time"`
	Status           BucketRestoreStatus `json:"status"`
	ProgressPercent  int                 `json:"progress_percent"`
	RestoredObjects  int64               `json:"restored_objects" doc:"That were changed or deleted since."`
	RestoredBytes    int64               `json:"restored_bytes"`
	RemovedObjects   int64               `json:"removed_objects" doc:"That were made since: they are in the trash, or earlier versions."`
	UnchangedObjects int64               `json:"unchanged_objects" doc:"Keys that need nothing."`
	SkippedObjects   int64               `json:"skipped_objects" doc:"Keys that were written since the restore began, and objects that are damaged, locked, or older than the bucket keeps objects."`
	Partial          bool                `json:"partial" doc:"Whether the counts are only of the first keys: those that a dry run of a large bucket saw in 10 seconds."`
	StartedAt        *time.Time          `json:"started_at"`
	CompletedAt      *time.Time          `json:"completed_at"`
	Error            *string             `json:"error"`
}

// RestoreBucket is a request to bring a bucket back to a moment.
type RestoreBucket struct {
	TargetTime time.Time `json:"target_time" doc:"All objects become what they were at this moment."`
	DryRun     *bool     `json:"dry_run,omitzero" required:"false" doc:"Whether to answer the plan only."`
}

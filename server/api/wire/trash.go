package wire

import "time"

// TrashedDatabase is a deleted database that can be restored with its backups.
type TrashedDatabase struct {
	ID               string    `json:"id"`
	Name             string    `json:"name"`
	Project          string    `json:"project" doc:"Id of its project."`
	DeletedAt        time.Time `json:"deleted_at"`
	RecoverableUntil time.Time `json:"recoverable_until"`
}

// TrashedBucket is a deleted bucket that can be restored with its objects.
type TrashedBucket struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Project     string    `json:"project" doc:"Id of its project."`
	ObjectCount int64     `json:"object_count"`
	SizeBytes   int64     `json:"size_bytes"`
	DeletedAt   time.Time `json:"deleted_at"`
}

// RestoredBucket is a bucket that came back from the trash.
type RestoredBucket struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	ExpiryOff bool   `json:"expiry_off" doc:"Whether the bucket's expiry_rules were removed, because objects that had reached their age in the trash, or versions, would be removed immediately."`
}

// TrashedObject is a deleted object that can be restored.
type TrashedObject struct {
	ID        string    `json:"id" doc:"Of this version of the object."`
	BucketID  string    `json:"bucket_id"`
	Key       string    `json:"key"`
	SizeBytes int64     `json:"size_bytes"`
	DeletedAt time.Time `json:"deleted_at"`
}

// EmptiedTrash is how much was removed from the trash.
type EmptiedTrash struct {
	Databases int `json:"databases"`
	Buckets   int `json:"buckets"`
	Objects   int `json:"objects"`
}

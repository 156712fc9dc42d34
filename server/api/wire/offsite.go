package wire

import "time"

// Offsite describes the copy of the whole appliance in a store elsewhere.
type Offsite struct {
	Status         OffsiteStatus       `json:"status"`
	Point          *time.Time          `json:"point" doc:"The moment to which a recovery on another machine would bring everything; null if there is nothing to recover from."`
	LagSeconds     *float64            `json:"lag_seconds" doc:"The age of the oldest change that the copy lacks; 0 if it has all."`
	BacklogBytes   int64               `json:"backlog_bytes" doc:"What waits to be copied, about."`
	Streams        []OffsiteStream     `json:"streams" doc:"The same of each kind of data, and of the WAL of each of the organization's databases; empty while the store cannot be reached."`
	CheckpointAt   *time.Time          `json:"checkpoint_at" doc:"When the newest checkpoint was made, from which a recovery starts."`
	VerifiedAt     *time.Time          `json:"verified_at" doc:"When the copy was last read back."`
	DamagedObjects int                 `json:"damaged_objects" doc:"How many could not be read then."`
	RestoredAt     *time.Time          `json:"restored_at" doc:"When a database was last restored on trial from the copy alone, and that succeeded."`
	RestoreFailed  bool                `json:"restore_failed" doc:"Whether the newest trial restore failed. The appliance's log says why."`
	Problem        *string             `json:"problem" doc:"Why nothing is copied at the moment."`
	Objects        OffsiteObjects      `json:"objects"`
	TakenOverBy    *string             `json:"taken_over_by" doc:"The machine that took over; this one is read-only since."`
	Recovery       *RecoveredAppliance `json:"recovery" doc:"How this appliance was brought back from a copy, or is; null if it was not."`
}

// OffsiteObjects says where large objects are.
type OffsiteObjects struct {
	Away            int64  `json:"away" doc:"How many objects are in the copy only. A download fetches what it sends."`
	AwayBytes       int64  `json:"away_bytes"`
	LocalBytes      int64  `json:"local_bytes" doc:"What the files of large objects and exports take of this disk."`
	LocalLimitBytes *int64 `json:"local_limit_bytes" doc:"What they may take, as the operator has configured it, less where the disk is nearly full; null is without limit."`
}

// OffsiteStream is how far the copy is with a part of the data.
type OffsiteStream struct {
	Stream       OffsiteStreamName `json:"stream"`
	DatabaseID   *string           `json:"database_id" doc:"Of the stream wal."`
	Database     *string           `json:"database" doc:"The database's name."`
	Point        time.Time         `json:"point"`
	LagSeconds   float64           `json:"lag_seconds"`
	BacklogBytes int64             `json:"backlog_bytes"`
}

// OffsiteDatabase is how far the copy is with one database.
type OffsiteDatabase struct {
	Status       OffsiteStatus `json:"status"`
	Point        *time.Time    `json:"point" doc:"The moment to which a recovery on another machine would bring the database; null if that is unknown."`
	LagSeconds   *float64      `json:"lag_seconds" doc:"The age of the oldest change that the copy lacks; 0 if it has all."`
	BacklogBytes int64         `json:"backlog_bytes" doc:"What waits to be copied, about."`
	VerifiedAt   *time.Time    `json:"verified_at" doc:"When the copy was last read back."`
}

// RecoveredAppliance is the report of a recovery from a copy.
type RecoveredAppliance struct {
	Machine        string              `json:"machine" doc:"Whose copy it is."`
	Until          time.Time           `json:"until" doc:"The last change that was brought back."`
	StartedAt      time.Time           `json:"started_at"`
	EndedAt        *time.Time          `json:"ended_at" doc:"When everything was brought back that could be; null before."`
	Complete       bool                `json:"complete" doc:"It has ended, and all of the organization's databases are back, except those with left or in_trash. False while one has a problem: the next start tries again, and a restore of another backup or the deletion of the database ends that."`
	Databases      []RecoveredDatabase `json:"databases" doc:"The organization's."`
	ObjectsDropped int                 `json:"objects_dropped" doc:"How many objects were so new that their bytes had not been copied."`
	ObjectsDamaged int                 `json:"objects_damaged" doc:"How many objects are damaged or missing in the copy."`
}

// RecoveredDatabase is a database that a recovery brings back.
type RecoveredDatabase struct {
	DatabaseID   string     `json:"database_id"`
	Database     string     `json:"database" doc:"Its name."`
	Done         bool       `json:"done"`
	Left         bool       `json:"left" doc:"It stays in the copy, because the recovery was asked for others only."`
	InTrash      bool       `json:"in_trash" doc:"It was in the trash: it is brought back when it is restored from there."`
	LastCommitAt *time.Time `json:"last_commit_at" doc:"Of its last commit that was brought back; null if unknown."`
	Problem      *string    `json:"problem" doc:"Why it could not be brought back."`
}

package wire

import "time"

// Offsite describes the copy of the whole appliance in a store elsewhere.
type Offsite struct {
	Status         OffsiteStatus  `json:"status"`
	Point          *time.Time     `json:"point" doc:"The moment to which a recovery on another machine would bring everything; null if there is nothing to recover from."`
	LagSeconds     *float64       `json:"lag_seconds" doc:"The age of the oldest change that the copy lacks; 0 if it has all."`
	BacklogBytes   int64          `json:"backlog_bytes" doc:"What waits to be copied, about."`
	CheckpointAt   *time.Time     `json:"checkpoint_at" doc:"When the newest checkpoint was made, from which a recovery starts."`
	VerifiedAt     *time.Time     `json:"verified_at" doc:"When the copy was last read back."`
	DamagedObjects int            `json:"damaged_objects" doc:"How many could not be read then."`
	RestoredAt     *time.Time     `json:"restored_at" doc:"When a database was last restored on trial from the copy alone, and that succeeded."`
	Problem        *string        `json:"problem" doc:"Why nothing is copied at the moment."`
	Objects        OffsiteObjects `json:"objects"`
	TakenOverBy    *string        `json:"taken_over_by" doc:"The machine that took over; this one is read-only since."`
}

// OffsiteObjects says where large objects are.
type OffsiteObjects struct {
	Away            int64  `json:"away" doc:"How many objects are in the copy only. A download fetches what it sends."`
	AwayBytes       int64  `json:"away_bytes"`
	LocalBytes      int64  `json:"local_bytes" doc:"What the files of large objects and exports take of this disk."`
	LocalLimitBytes *int64 `json:"local_limit_bytes" doc:"What they may take, as the operator has configured it, less where the disk is nearly full; null is without limit."`
}

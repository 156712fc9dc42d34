package wire

import "time"

// CreateBranch is a request to make a branch of a database.
type CreateBranch struct {
	Name              string       `json:"name" doc:"Of the branch; as of any database, and unique in the project."`
	At                *time.Time   `json:"at,omitzero" required:"false" doc:"The moment of the parent as which the branch begins; now when left out."`
	ExpiresIn         *int64       `json:"expires_in,omitzero" required:"false" minimum:"60" maximum:"315360000" doc:"After how many seconds the branch is deleted; never when left out."`
	SleepAfterSeconds *WholeNumber `json:"sleep_after_seconds,omitzero" required:"false" minimum:"0" maximum:"604800" doc:"After how long without connections its server stops, until somebody connects: 10 or more, 0 for a server that always runs. When left out, 600 if it can sleep: its allow-list has no entries or includes 127.0.0.1, and it does not have pg_cron."`
}

// ResetBranch is a request to put a branch back to its parent.
type ResetBranch struct {
	At *time.Time `json:"at,omitzero" required:"false" doc:"The moment of the parent; now when left out."`
}

// Branch is a branch that is being made or reset.
type Branch struct {
	Database         Database     `json:"database" doc:"The branch. It is creating until the operation is completed."`
	Operation        Operation    `json:"operation" doc:"What makes or resets it."`
	Method           BranchMethod `json:"method"`
	MethodReason     *string      `json:"method_reason" doc:"Why it is a restore; null for a clone."`
	EstimatedSeconds *float64     `json:"estimated_seconds" doc:"Based on how long others took on this machine; null without a comparable measurement."`
}

// BranchMethod is how a branch gets its data.
type BranchMethod string

const (
	BranchClone   BranchMethod = "clone"
	BranchRestore BranchMethod = "restore"
)

// BranchDiff is how the schema of a branch differs from that of its parent.
type BranchDiff struct {
	ParentID  string `json:"parent_id"`
	BranchID  string `json:"branch_id"`
	Identical bool   `json:"identical"`
	Diff      string `json:"diff" doc:"The unified difference of what pg_dump --schema-only writes, from the parent to the branch; empty if there is none."`
	Truncated bool   `json:"truncated" doc:"Whether diff is only the beginning of a difference of more than 2 MiB."`
}

package model

import "time"

// Upgrade describes the upgrade of a database to a newer major version of PostgreSQL,
// or its dry run.
type Upgrade struct {
	From string `json:"from"` // version, such as "15.18"
	To   string `json:"to"`
	// Estimated is about how long the database is to be down, 0 while that is unknown.
	Estimated time.Duration `json:"estimated,omitempty"`
	// StoppedAt is when the database was stopped, nil before and for a dry run.
	StoppedAt *time.Time `json:"stopped_at,omitempty"`
	// Down is how long the database was down; of a dry run, how long it is going to be.
	// It is 0 until that is known, like the fields below.
	Down      time.Duration `json:"down,omitempty"`
	SizeBytes int64         `json:"size_bytes,omitempty"` // of the data, which is needed a second time
	// Updates are extensions of which there is a newer version, which the upgrade leaves
	// to the user.
	Updates []ExtensionUpdate `json:"updates,omitempty"`
	Notes   []string          `json:"notes,omitempty"` // what is not as it was before
	// Slots are the replication slots of clients that the upgrade drops; Notes name them, too.
	Slots []string `json:"slots,omitempty"`
	// Analyzed reports that the planner's statistics are complete before the database starts again.
	Analyzed bool `json:"analyzed,omitempty"`
}

// CopyGeneration is the number of the copy of the data that an upgrade uses up while it
// builds op.Generation.
func (op DatabaseOperation) CopyGeneration() int { return op.Generation - 1 }

// ExtensionUpdate is a newer version of an extension.
type ExtensionUpdate struct {
	Name string `json:"name"`
	From string `json:"from"`
	To   string `json:"to"`
}

package databases

import (
	"context"

	"holdfast/backup/wal"
	"holdfast/engine/model"
)

// Backups is what this package needs from the package that keeps the backups and
// the WAL.
type Backups interface {
	// ReceiveWAL archives the WAL of the database's generation from now on. It is
	// idempotent.
	ReceiveWAL(db model.Database) error
	// StopReceiving reverses ReceiveWAL once the instance has stopped. It is
	// idempotent.
	StopReceiving(database string) error
	// Drain archives the last WAL of a database whose instance was shut down, and stops
	// to receive it. It fails if the archive then lacks any.
	Drain(db model.Database) error
	// WALStatus returns the position of the archive. receives is false while no WAL is
	// received.
	WALStatus(database string) (status wal.Status, receives bool)
	// BackUpIfOwed starts, in the background, the backup that a restore or a gap in
	// the WAL called for before the appliance stopped, if there is one, and the first
	// one of a database if that cannot wait for the schedule.
	BackUpIfOwed(db model.Database)
	// Rebuild builds the data directory of a database whose record says Rebuild from
	// its newest backup, and starts the instance.
	Rebuild(ctx context.Context, db model.Database) error
	// RemoveBuilt removes the data directory that op was building.
	RemoveBuilt(db model.Database, op model.DatabaseOperation) error
	// RemoveBackups removes all of a database's backups and WAL. It is idempotent.
	RemoveBackups(database string) error
}

// Imports is what this package needs from the package that imports databases.
type Imports interface {
	// Operation sets the progress of op if op is a running import.
	Operation(op *model.DatabaseOperation)
	// Reserved returns the sizes in bytes of the sources of running imports, by the
	// database that each one fills.
	Reserved() map[string]int64
}

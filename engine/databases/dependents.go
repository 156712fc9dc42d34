package databases

import (
	"context"

	"holdfast/backup/wal"
	"holdfast/engine/model"
)

// Backups is what the life of a database needs of the room that keeps its
// backups and its WAL.
type Backups interface {
	// ReceiveWAL makes sure that the WAL of the database's generation is archived.
	// Calling it again is fine.
	ReceiveWAL(db model.Database) error
	// StopReceiving ends that when the instance has stopped. Calling it again is
	// fine.
	StopReceiving(database string) error
	// WALStatus returns how far the archive is, false while nothing receives WAL.
	WALStatus(database string) (status wal.Status, receives bool)
	// BackUpIfOwed has a backup made in the background that a restore or a gap in
	// the WAL called for before the appliance stopped.
	BackUpIfOwed(db model.Database)
	// Rebuild makes the data directory of a database whose record says Rebuild, from
	// its newest backup, and starts it.
	Rebuild(ctx context.Context, db model.Database) error
	// RemoveBuilt removes the data directory that op was building.
	RemoveBuilt(db model.Database, op model.DatabaseOperation) error
	// RemoveBackups removes all of a database's backups and WAL. Those that are gone
	// are fine.
	RemoveBackups(database string) error
}

// Imports is what the life of a database needs of the room that fills databases
// from elsewhere.
type Imports interface {
	// Operation sets the progress of op if it is an import under way.
	Operation(op *model.DatabaseOperation)
	// Reserved returns the sizes in bytes of the sources of the imports under way, by
	// the database each one fills.
	Reserved() map[string]int64
}

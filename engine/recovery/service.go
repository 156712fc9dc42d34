// Package recovery makes backups and restores them. It owns the archive of each
// database's WAL, the schedule, restores in place and into new databases, undo,
// the verification of backups by trial restores, logical exports, and the rebuild
// of databases that were moved here.
//
// A restore builds a generation of the data directory beside the one that serves
// and switches to it in one transaction, so after a crash either the old or the
// new one is current.
package recovery

import (
	"sync"

	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/internal/durable"
)

// Service carries out the operations on backups.
type Service struct {
	core          *core.Core
	databases     *databases.Service
	offsite       Offsite // nil without a recovery from an off-site copy
	archives      archiveSet
	measured      sync.Map     // measurement by the id of the database
	unusedUntil   sync.Map     // the WAL position up to which nobody has written, by the id of the database
	Exports       core.WakeUps // wakes the workers that make exports
	Verifications core.WakeUps // wakes the worker that verifies backups
	// CanClone reports whether the file system of a directory can share blocks between files.
	CanClone func(dir string) bool
	// WALFiles is the file system of the WAL archives, nil for the operating system's. Tests inject faults.
	WALFiles durable.FS
	slots    chan struct{} // holds one element for each scheduled backup under way
}

// New returns the service.
func New(c *core.Core, d *databases.Service) *Service {
	return &Service{
		core: c, databases: d,
		Exports:       core.NewWakeUps(),
		Verifications: core.NewWakeUps(),
		CanClone:      durable.CanClone,
		slots:         make(chan struct{}, backupSlots),
	}
}

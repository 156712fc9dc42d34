// Package recovery holds backups and what is made of them: the archive of each
// database's WAL, the schedule, restores in place and into new databases, undo,
// verification of backups by trial restores, logical exports, and the rebuild of
// databases that were moved here.
//
// A restore builds a generation of the data directory beside the one that serves
// and switches to it in one transaction, so a crash leaves either.
package recovery

import (
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/objects"
)

// Service carries out the operations on backups.
type Service struct {
	core      *core.Core
	databases *databases.Service
	objects   *objects.Service
	Archives  *Archives
	Exports   core.Nudges
	Proofs    core.Nudges
	turns     chan struct{} // holds one for each scheduled backup under way
}

// New returns the service.
func New(c *core.Core, d *databases.Service, o *objects.Service) *Service {
	return &Service{
		core: c, databases: d, objects: o,
		Archives: newArchives(),
		Exports:  core.NewNudges(),
		Proofs:   core.NewNudges(),
		turns:    make(chan struct{}, backupTurns),
	}
}

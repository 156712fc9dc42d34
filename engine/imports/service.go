// Package imports fills new databases, sandboxes among them, from servers
// elsewhere. Package importer copies the data; this package admits an import,
// records it and its progress, and opens or removes the database at its end.
package imports

import (
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/recovery"
)

// Service carries out the operations on imports.
type Service struct {
	core      *core.Core
	databases *databases.Service
	recovery  *recovery.Service
	running   *runningImports
}

// New returns the service.
func New(c *core.Core, d *databases.Service, r *recovery.Service) *Service {
	return &Service{core: c, databases: d, recovery: r, running: newRunning()}
}

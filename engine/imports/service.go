// Package imports fills new databases from servers elsewhere, and sandboxes that
// begin as a copy. The copying itself is package importer's; here are its
// admission, its record, its progress and its end.
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
	Imports   *RunningImports
}

// New returns the service.
func New(c *core.Core, d *databases.Service, r *recovery.Service) *Service {
	return &Service{core: c, databases: d, recovery: r, Imports: newRunningImports()}
}

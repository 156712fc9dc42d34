// Package imports fills new databases, including sandboxes, from other servers. Package importer copies the data; this
// package admits an import, records it and its progress, and opens or removes the database at its end.
package imports

import (
	"sync"
	"time"

	"holdfast/engine/core"
	"holdfast/engine/databases"
)

// Service carries out the operations on imports.
type Service struct {
	// ViewsInterval is how often the materialized views of a database that follows are filled, at most.
	ViewsInterval time.Duration

	core      *core.Core
	databases *databases.Service

	admission sync.Mutex // held while one import is admitted
	accounts  sync.Map   // *importer.Account of each running import, by the ids of the import and its operation
	runs      sync.Map   // *importRun of each running import, by its id
	sizes     sync.Map   // int64, source sizes of admitted imports, by the ids of the new databases
}

// New returns the service.
func New(c *core.Core, d *databases.Service) *Service {
	s := &Service{ViewsInterval: time.Hour, core: c, databases: d}
	c.Space.Count(s.StillToImport)
	return s
}

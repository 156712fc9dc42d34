// Package insight reports on the appliance and its databases: samples over time,
// usage, recommendations, features, the status for agents, a nearly full disk, and
// what a database's statements cost and its tables take. It changes no resource,
// except that it forgets counters when asked to.
package insight

import (
	"holdfast/engine/access"
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/imports"
	"holdfast/engine/offsite"
	"holdfast/engine/recovery"
)

// Service answers questions about the appliance and its databases.
type Service struct {
	core      *core.Core
	access    *access.Service
	databases *databases.Service
	recovery  *recovery.Service
	imports   *imports.Service
	offsite   *offsite.Service
	adviser   *adviser
	dumps     toolSearch // for pg_dump
}

// New returns the service.
func New(c *core.Core, a *access.Service, d *databases.Service, r *recovery.Service, i *imports.Service, o *offsite.Service) *Service {
	return &Service{core: c, access: a, databases: d, recovery: r, imports: i, offsite: o, adviser: newAdviser()}
}

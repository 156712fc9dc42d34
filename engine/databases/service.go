// Package databases manages databases: creation from the warm pool, connections,
// the allow-list, settings, roles, row-level security, restarts, deletion and the
// trash, sandbox leases, and the recovery of each database at start. It owns the
// supervisor of the PostgreSQL servers.
//
// The record is authoritative. A change is committed first, then applied to the
// server; a change that could not be applied is pending (pending_change.go,
// pending_roles.go) and is applied when the server is back. Operations that a crash
// interrupted are completed or rolled back before anything else (recover.go).
package databases

import (
	"sync"

	"holdfast/engine/certificates"
	"holdfast/engine/core"
	"holdfast/engine/postgres"
	"holdfast/engine/postgres/binaries"
)

// Service carries out the operations on databases.
type Service struct {
	core       *core.Core
	Statistics StatisticsCache
	Progress   core.Progress // of running operations
	samples    *sampleBuffer
	States     instanceStates
	Timeouts   Timeouts
	// OlderMetadata is set during a start whose metadata is older than the files.
	OlderMetadata bool
	verifiers     knownVerifiers
	backups       Backups
	imports       Imports
	warm          *warmServers
	choosing      *portChoice
	minors        minorUpdates
	held          restartsHeld
	settingNames  settingNames
	proxies       proxySet
	resting       sync.Map // ids of databases that sleep, see Rests
	takingBack    sync.Map // ids of databases, see takeBack
	endsLate      sync.Map // ids of databases, see endLate

	// StartPostgres sets the following fields.
	Binaries  binaries.Set // for new databases
	Majors    *Majors
	CA        certificates.CA
	SocketDir string
	Instances *postgres.Supervisor
	WarmPool  *postgres.WarmPool // of the version that new databases get
	pools     versionPools       // of others

	apiCertificate sync.Mutex // held while the API's certificate is issued
}

// New returns the service. Connect must be called before it is used.
func New(c *core.Core) *Service {
	return &Service{core: c, samples: newSampleBuffer(), Timeouts: defaultTimeouts(), warm: newWarmServers(), choosing: newPortChoice()}
}

// Connect sets the services that build on this one.
func (s *Service) Connect(backups Backups, imports Imports) { s.backups, s.imports = backups, imports }

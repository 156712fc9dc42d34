package core

import (
	"log/slog"
	"net/netip"
	"time"

	"holdfast/engine/advice"
	"holdfast/engine/model"
	"holdfast/engine/postgres"
)

// Config is what an Engine is made of. Every field but Observe, Log and Clock must be
// set.
type Config struct {
	// DataDir is the absolute path of the data directory.
	DataDir string
	// Search finds PostgreSQL when the engine starts.
	Search postgres.Search
	// FirstPort and LastPort bound the ports of the instances.
	FirstPort, LastPort int
	// Listen are the addresses the instances listen on.
	Listen []string
	// PublicHost is the name or address clients reach this machine by.
	PublicHost string
	// Warm is how many prepared data directories are kept ready.
	Warm int
	// Allowlist is what a new database begins with.
	Allowlist []netip.Prefix
	// Rates are the budgets of each key.
	Rates map[model.RateClass]Rate
	// Plans are the operator's, by name.
	Plans map[string]model.Plan
	// MaxObjectBytes is the size of the largest object.
	MaxObjectBytes int64
	// TrashRetention is how long a deleted database can be brought back.
	TrashRetention time.Duration
	// ObjectTrashRetention is how long deleted objects and buckets can be brought
	// back; 0 deletes at once.
	ObjectTrashRetention time.Duration
	// ReplacedRetention is how long the data a restore replaced is kept.
	ReplacedRetention time.Duration
	// BackupInterval is the time from one scheduled backup of a database to
	// the next, 0 for none.
	BackupInterval time.Duration
	// BackupRetention is how long completed backups are kept, 0 for ever.
	BackupRetention time.Duration
	// Exports says whether a logical export follows each completed backup.
	Exports bool
	// VerifyBackups says whether each completed backup is restored once.
	VerifyBackups bool
	// AuditKeep and AuditKeepBytes are how many audit entries are kept for each
	// organization, and of what size together; 0 is no bound.
	AuditKeep, AuditKeepBytes uint64
	// AuditRetention is how long audit entries are kept; 0 is no bound.
	AuditRetention time.Duration
	// Advice says from when on something is worth a recommendation.
	Advice advice.Thresholds
	// Version is the appliance's own version.
	Version string

	// Observe is told of what happens by itself; it must not block. Nil for
	// nobody.
	Observe func(model.Event)

	Log   *slog.Logger
	Clock func() time.Time
}

// Rate is a budget: at most Limit requests in any Window. Limit is 1 at least.
type Rate struct {
	Limit  int
	Window time.Duration
}

// DefaultRates returns the budgets a key has unless the operator says
// otherwise.
func DefaultRates() map[model.RateClass]Rate {
	return map[model.RateClass]Rate{
		model.RateCreateDatabase: {30, time.Minute},
		model.RateCreateBackup:   {10, time.Minute},
		model.RateRestore:        {10, time.Minute},
		model.RateCreateBucket:   {30, time.Minute},
		model.RateImport:         {10, time.Minute},
	}
}

package core

import (
	"log/slog"
	"net/netip"
	"time"

	"holdfast/engine/advice"
	"holdfast/engine/model"
	"holdfast/engine/postgres/binaries"
	"holdfast/internal/sealed"
)

// Config configures an Engine, which does not validate it. DataDir, Search, the
// ports, Listen, PublicHost, MaxObjectBytes and Advice must be set. The zero values
// of the other fields are valid: a nil Log discards, a nil Clock is time.Now, and
// requests without a budget in Rates are not limited.
type Config struct {
	// DataDir is the absolute path of the data directory.
	DataDir string
	// Search finds PostgreSQL when the engine starts.
	Search binaries.Search
	// FirstPort and LastPort delimit the ports of the instances.
	FirstPort, LastPort int
	// Listen are the addresses the instances listen on.
	Listen []string
	// PublicHost is the name or address by which clients reach this machine.
	PublicHost string
	// Warm is the number of running servers in the warm pool. With 0 nothing is
	// prepared ahead of need.
	Warm int
	// Allowlist is the initial allow-list of a new database.
	Allowlist []netip.Prefix
	// Rates are the budgets of each key.
	Rates map[model.RateClass]Rate
	// Plans are the operator's plans, by name.
	Plans map[string]model.Plan
	// MaxObjectBytes is the maximum size of an object.
	MaxObjectBytes int64
	// TrashRetention is how long a deleted database can be restored.
	TrashRetention time.Duration
	// ObjectTrashRetention is how long deleted objects and buckets can be restored; 0
	// deletes them at once.
	ObjectTrashRetention time.Duration
	// WebsiteURL is the URL below whose host buckets are served as websites, "" for none.
	WebsiteURL string
	// ReplacedRetention is how long the data that a restore replaced is kept.
	ReplacedRetention time.Duration
	// BackupInterval is the time between scheduled backups of a database, 0 for
	// none.
	BackupInterval time.Duration
	// BackupRetention is how long completed backups are kept, 0 for forever.
	BackupRetention time.Duration
	// SandboxSuperuser makes the owners of empty sandboxes superusers of their servers:
	// whoever may take a sandbox is the user as whom the servers run, or root.
	SandboxSuperuser bool
	// Exports enables a logical export after each completed backup.
	Exports bool
	// VerifyBackups enables a test restore of each completed backup.
	VerifyBackups bool
	// AuditKeep and AuditKeepBytes limit the number and total size of each
	// organization's audit entries; 0 is no limit.
	AuditKeep, AuditKeepBytes uint64
	// AuditRetention is how long audit entries are kept; 0 is no limit.
	AuditRetention time.Duration
	// Advice has the thresholds for recommendations.
	Advice advice.Thresholds
	// Offsite is the copy in a store elsewhere; its URL is empty for none.
	Offsite Offsite
	// LocalObjects says which large objects may leave this disk for the off-site copy.
	LocalObjects LocalObjects
	// Version is the appliance's version.
	Version string

	// Observe, if not nil, receives the appliance's events; it must not block.
	Observe func(model.Event)
	// Webhooks configures who may receive events.
	Webhooks Webhooks

	Log   *slog.Logger
	Clock func() time.Time
}

// Offsite configures the copy of everything in a store elsewhere.
type Offsite struct {
	// URL is s3://bucket/prefix or file:///path.
	URL string
	// Passphrases and Identities are the texts of the files that open the master keys; one
	// of them at least is set.
	Passphrases, Identities model.Secret
	// Opened has the master keys that were opened with them before, nil for none.
	Opened *sealed.Unwrapped
	// Interval is how far the copy may be behind, where something changed.
	Interval time.Duration
	// Bandwidth limits uploads, in bytes a second; 0 does not.
	Bandwidth int64
	// Retention is for how long what is stored is locked, where the bucket has Object Lock.
	Retention time.Duration
	// Verify reads a sample of the copy back every day, and restores a database from it every week.
	Verify bool
}

// Webhooks configures webhooks.
type Webhooks struct {
	// OperatorURL receives alarming events, "" for none. It may contain a secret of the
	// receiver and is never logged. Its requests are signed with the key in SecretFile,
	// which is created if it does not exist.
	OperatorURL, SecretFile string
	// AllowPrivate lets the webhooks of organizations have URLs in private networks and on
	// this machine, also with http.
	AllowPrivate bool
}

// LocalObjects bounds what large objects take on this disk: those that were not read for longest leave it for the off-site copy.
type LocalObjects struct {
	// Bytes or Share, of the disk, is the bound. All objects stay where both are 0.
	Bytes int64
	Share float64
	// Above is the size of the smallest object that may leave, in bytes.
	Above int64
	// Unused is after how long without being read an object leaves although there is room; 0 is never.
	Unused time.Duration
}

// Rate is a budget: at most Limit requests in any Window. Limit is at least 1.
type Rate struct {
	Limit  int
	Window time.Duration
}

// DefaultRates returns the default budgets of a key.
func DefaultRates() map[model.RateClass]Rate {
	return map[model.RateClass]Rate{
		model.RateCreateDatabase: {30, time.Minute},
		model.RateCreateBackup:   {10, time.Minute},
		model.RateRestore:        {10, time.Minute},
		model.RateCreateBucket:   {30, time.Minute},
		model.RateImport:         {10, time.Minute},
		model.RateCreateKey:      {10, time.Minute},
		model.RateInvite:         {30, time.Minute},
	}
}

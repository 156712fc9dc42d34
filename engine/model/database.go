package model

import (
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// DatabaseStatus is the state of a database.
type DatabaseStatus string

// The states of a database. Its transitions are:
//
//	creating → available → deleting
//	available ⇄ restarting | restoring | importing | unavailable
//	any → failed, which needs a person
const (
	DatabaseCreating    DatabaseStatus = "creating"
	DatabaseAvailable   DatabaseStatus = "available"
	DatabaseRestarting  DatabaseStatus = "restarting"
	DatabaseRestoring   DatabaseStatus = "restoring"
	DatabaseImporting   DatabaseStatus = "importing"
	DatabaseUnavailable DatabaseStatus = "unavailable"
	DatabaseFailed      DatabaseStatus = "failed"
	DatabaseDeleting    DatabaseStatus = "deleting"
)

// Database is a managed database: a PostgreSQL instance of its own.
type Database struct {
	ID           string         `json:"id"`
	Organization string         `json:"organization"`
	Project      string         `json:"project"`
	Name         string         `json:"name"`
	Status       DatabaseStatus `json:"status"`
	StatusReason string         `json:"status_reason"`
	Version      string         `json:"version"` // of PostgreSQL, such as "15.18"
	Major        int            `json:"major"`
	Port         int            `json:"port"`

	Owner            string `json:"owner"`              // role that owns the database
	OwnerPassword    []byte `json:"owner_password"`     // sealed
	ReadOnly         string `json:"read_only"`          // role with read-only access
	ReadOnlyPassword []byte `json:"read_only_password"` // sealed
	// OwnPassword is set while the owner's role has a password that was set through
	// SQL, so that OwnerPassword is not its password.
	OwnPassword *OwnPassword `json:"own_password,omitempty"`
	// Roles are those that clients made besides the owner and the read-only role, by name.
	Roles []DatabaseRole `json:"roles,omitempty"`

	Allowlist          []netip.Prefix `json:"allowlist"`
	AllowlistUpdatedAt time.Time      `json:"allowlist_updated_at"`
	AllowlistAppliedAt time.Time      `json:"allowlist_applied_at"` // when it took effect

	// Sandbox means that the database is discarded when its holder is gone: it has
	// no backups, and does not wait for the disk.
	Sandbox bool `json:"sandbox,omitempty"`
	// Superuser means that the owner is a superuser of the sandbox's server.
	Superuser bool `json:"superuser,omitempty"`

	// Parent is the database of which this one is a branch, "" if it is none; it may
	// have been removed since. BranchedAt is the moment of the parent whose data the
	// branch began with, at its creation or its last reset. ExpiresAt is when the
	// branch is deleted, nil for never.
	Parent     string     `json:"parent,omitempty"`
	BranchedAt *time.Time `json:"branched_at,omitempty"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`

	// BackupEvery is the time between scheduled backups and BackupRetention how long
	// backups are kept; 0 means the appliance's.
	BackupEvery     time.Duration `json:"backup_every,omitempty"`
	BackupRetention time.Duration `json:"backup_retention,omitempty"`
	// ConnectionLimit is how many sessions the owner may have at a time, 0 for as many
	// as the server has.
	ConnectionLimit   int               `json:"connection_limit,omitempty"`
	MaintenanceWindow MaintenanceWindow `json:"maintenance_window,omitzero"`

	// LogicalReplication means that clients may stream the database's changes, with the
	// role of ReplicationUser.
	LogicalReplication  bool   `json:"logical_replication,omitempty"`
	ReplicationPassword []byte `json:"replication_password,omitempty"` // sealed; nil while nobody may
	// SleepAfter is how long no client must be connected before the server is stopped until
	// one connects; 0 means that it always runs.
	SleepAfter time.Duration `json:"sleep_after,omitempty"`
	// Slept is set when the server was last stopped because of that. It holds until the
	// server runs again, which is not recorded.
	Slept *Slept `json:"slept,omitempty"`

	// Following means that an import fills the database and subscribes it to its source.
	Following bool `json:"following,omitempty"`

	// Provisioned is the position in the WAL (an LSN) after the database was created empty: what anybody writes is after
	// it. "" means that it did not begin empty, or is older than this field.
	Provisioned string `json:"provisioned,omitempty"`

	// Settings are the operator's; they override those tuned to the machine.
	Settings map[string]string `json:"settings"`
	// OwnSettings are those that clients changed; the operator's precede them.
	OwnSettings map[string]string `json:"own_settings,omitempty"`
	// Preload are the extensions whose libraries the server loads at its start.
	Preload []string `json:"preload,omitempty"`

	// Generation numbers the instance's data directory. A restore builds the next one
	// beside it and then updates the record.
	Generation int `json:"generation"`
	// Served lists the generations that have served the database and since when, in
	// order. Before the first entry it was generation 1.
	Served []Served `json:"served"`
	// Begun is the last generation whose build was started.
	Begun int `json:"begun"`
	// Replaced is the generation that the last restore replaced, kept so that the
	// restore can be undone.
	Replaced *Replaced `json:"replaced"`
	// Rebuild means that the database was moved here with only its backups, and that
	// its data directory still has to be restored from the newest one.
	Rebuild bool `json:"rebuild,omitempty"`
	// PendingChange is a change to this record that the instance may not have applied
	// yet, nil if there is none.
	PendingChange *PendingChange `json:"pending_change,omitempty"`
	// Operation is the id of the running operation, "" when there is none.
	Operation string `json:"operation"`
	// LastRestore is the id of the last operation that started to replace the data,
	// "" if none did.
	LastRestore string    `json:"last_restore,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	// Trash is set while the database is in the trash.
	Trash *Trash `json:"trash"`
}

// OwnPassword is a password that was given to the owner's role through SQL. The
// appliance does not know it and keeps it valid until it is rotated.
type OwnPassword struct {
	Verifier  []byte    `json:"verifier"` // sealed: the verifier in pg_authid
	NoticedAt time.Time `json:"noticed_at"`
}

// PendingChange is what a start needs to complete a change after a crash.
type PendingChange struct {
	Entry      AuditEntry `json:"entry"` // the entry to write if the change succeeds
	Idempotent string     `json:"once"`  // Call.Idempotent
	// Settings and OwnSettings are the previous settings, restored if the instance does not start
	// with the new ones.
	Settings    map[string]string `json:"settings"`
	OwnSettings map[string]string `json:"own_settings,omitempty"`
	// Preload are the previous extensions with libraries. Only a creation of an extension changes them.
	Preload []string `json:"preload,omitempty"`
	// Before has the previous properties that an update of the server's changes, restored if prepared transactions keep the
	// database from being renamed.
	Before *Database `json:"before,omitempty"`
	// Terminate means that a password rotation ends the open sessions.
	Terminate bool `json:"terminate,omitempty"`
	// EndRole is the role whose sessions the change ends, "" for none.
	EndRole string `json:"end_role,omitempty"`
	// TakenBack means that the record is again what it was before the change, because the instance did not follow it.
	// The instance may have followed half-way.
	TakenBack bool `json:"taken_back,omitempty"`
}

// Served records when a generation began to serve.
type Served struct {
	Generation int       `json:"generation"`
	Since      time.Time `json:"since"`
	// Seen is a time at which the generation served, although it is before Since: the clock was set back in
	// between. It is zero if the clock was not.
	Seen time.Time `json:"seen,omitzero"`
	// Undrained means that the last WAL of the previous generation may not have been
	// archived.
	Undrained bool `json:"undrained"`
	// Timeline and LSN are where the generation's WAL continues; 0 and "" if that was
	// not recorded.
	Timeline int    `json:"timeline,omitempty"`
	LSN      string `json:"lsn,omitempty"`
	// Major is set if the generation is of another major version of PostgreSQL than
	// the one before.
	Major int `json:"major,omitempty"`
	// BranchedAt is set if a branch was reset to its parent: the moment of the parent.
	BranchedAt *time.Time `json:"branched_at,omitempty"`
}

// Tag identifies what clients change of a database with PATCH.
func (d Database) Tag() string {
	return Tag([]any{d.Name, d.Project, d.BackupEvery, d.BackupRetention, d.ConnectionLimit, d.MaintenanceWindow, d.LogicalReplication, d.ExpiresAt, d.SleepAfter})
}

// SettingsTag identifies the settings of PostgreSQL that clients have set.
func (d Database) SettingsTag() string { return Tag(d.OwnSettings) }

// LastGeneration returns the highest generation ever used, including those that
// never served: a number is used only once.
func (d Database) LastGeneration() int { return max(d.Generation, d.Begun) }

// Slept describes how a database fell asleep.
type Slept struct {
	At time.Time `json:"at"`
	// Changed is when somebody was last connected who may have changed data.
	Changed time.Time `json:"changed"`
	// Position is the last checkpoint: as long as the data directory has that one, it is
	// as it was then, and all of its WAL is in the archive.
	Position  string `json:"position"`
	SizeBytes int64  `json:"size_bytes"` // of the database
}

// Replaced is a data directory that a restore replaced.
type Replaced struct {
	Generation int       `json:"generation"`
	At         time.Time `json:"at"`
	ExpiresAt  time.Time `json:"expires_at"`
	// BranchedAt is the database's at that time.
	BranchedAt *time.Time `json:"branched_at,omitempty"`
}

// Trash records when a database was deleted and until when it can be restored.
type Trash struct {
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
}

// OperationType is the kind of a database operation.
type OperationType string

// The kinds of database operation.
const (
	OperationBackup       OperationType = "backup"
	OperationRestore      OperationType = "restore"
	OperationPITR         OperationType = "point_in_time_restore"
	OperationImport       OperationType = "import"
	OperationRestart      OperationType = "restart"
	OperationDelete       OperationType = "delete"
	OperationExport       OperationType = "export"
	OperationVerification OperationType = "verification"
	OperationBranch       OperationType = "branch"
	OperationReset        OperationType = "reset"
	OperationUpgrade      OperationType = "upgrade"
	// OperationUpgradeDryRun upgrades a copy that is removed again.
	OperationUpgradeDryRun OperationType = "upgrade_dry_run"
)

// Beside reports whether operations of the type run beside others on the database.
func (t OperationType) Beside() bool {
	return t == OperationExport || t == OperationVerification || t == OperationUpgradeDryRun
}

// Replaces reports whether operations of the type replace the data of a database, unless they make a new one.
func (t OperationType) Replaces() bool {
	return t == OperationRestore || t == OperationPITR || t == OperationReset || t == OperationUpgrade
}

// BegunBy returns an action with the scope that begins operations of the type, "" for
// a type that cannot be cancelled. An export or a verification follows a backup.
func (t OperationType) BegunBy() Action {
	switch t {
	case OperationBackup, OperationExport, OperationVerification:
		return ActionBackupCreate
	case OperationRestore, OperationPITR, OperationBranch, OperationReset:
		return ActionRecoveryUndo
	case OperationUpgrade, OperationUpgradeDryRun:
		return ActionDatabaseUpgrade
	case OperationImport:
		return ActionDatabaseCreate
	default:
		return ""
	}
}

// OperationStatus is the state of a database operation.
type OperationStatus string

// The states of a database operation; the last three are final.
const (
	OperationPending   OperationStatus = "pending"
	OperationRunning   OperationStatus = "running"
	OperationCompleted OperationStatus = "completed"
	OperationFailed    OperationStatus = "failed"
	OperationCancelled OperationStatus = "cancelled"
)

// Final reports whether s is a final state.
func (s OperationStatus) Final() bool {
	return s == OperationCompleted || s == OperationFailed || s == OperationCancelled
}

// PhaseSwitching is the phase of a restore that can no longer be cancelled.
const PhaseSwitching = "switching"

// DatabaseOperation is a long-running operation on one database. It is persisted
// so that it can be resumed or rolled back after a crash.
type DatabaseOperation struct {
	ID           string          `json:"id"`
	Organization string          `json:"organization"`
	Database     string          `json:"database"`
	Type         OperationType   `json:"type"`
	Status       OperationStatus `json:"status"`
	Phase        string          `json:"phase"`
	Progress     int             `json:"progress"` // percent
	// TargetTime or TargetLSN is the requested restore point, if it is not the end
	// of a backup.
	TargetTime *time.Time `json:"target_time"`
	TargetLSN  string     `json:"target_lsn"`
	Backup     string     `json:"backup"`
	// NewDatabase is the database that the operation creates, "" for none.
	NewDatabase string `json:"new_database"`
	// Export is the id of the export that the operation makes, "" for none.
	Export string `json:"export"`
	// Generation is the data directory the operation builds, 0 for none.
	Generation int `json:"generation"`
	// BranchedAt is the moment of the parent to which a reset puts a branch, nil until
	// that is known.
	BranchedAt *time.Time `json:"branched_at,omitempty"`
	// Upgrade is what an upgrade does, or would do, nil for other operations.
	Upgrade *Upgrade `json:"upgrade,omitempty"`
	// CancelledBy has cancelled the operation, nil for none. Its end follows: it is
	// cancelled, or completed if it was about to end.
	CancelledBy *Actor     `json:"cancelled_by"`
	Error       string     `json:"error"`
	StartedAt   time.Time  `json:"started_at"`
	CompletedAt *time.Time `json:"completed_at"`
}

// The patterns of names, which the API's description shows. Some matching names
// are reserved.
const (
	DatabaseNamePattern = `^[A-Za-z][A-Za-z0-9_-]{0,62}$`
	DatabaseUserPattern = `^[a-z_][a-z0-9_]{0,62}$`
)

var (
	databaseName = regexp.MustCompile(DatabaseNamePattern)
	databaseUser = regexp.MustCompile(DatabaseUserPattern)
)

// ValidateDatabaseName checks a database's name, which is also the name of
// the PostgreSQL database.
func ValidateDatabaseName(field, name string) error {
	if !databaseName.MatchString(name) {
		const rule = "must begin with a letter and have at most 63 letters, digits, underscores and hyphens"
		if name == "" {
			return Invalid(field, "is required; it "+rule)
		}
		return Invalid(field, rule)
	}
	if lower := strings.ToLower(name); lower == "postgres" || strings.HasPrefix(lower, "template") {
		return Invalid(field, "%q is a name of PostgreSQL's own; choose another", name)
	}
	return nil
}

// DefaultOwner is the owner's role if the client names none.
const DefaultOwner = "app"

// ReadOnlySuffix ends the name of the read-only role.
const ReadOnlySuffix = "_readonly"

// ValidateDatabaseUser checks the name of the owner's role.
func ValidateDatabaseUser(field, name string) error {
	if !databaseUser.MatchString(name) {
		return Invalid(field, "must begin with a lower-case letter or underscore and have at most 63 lower-case letters, digits and underscores")
	}
	if strings.HasPrefix(name, "pg_") || name == "postgres" || name == "public" || name == "none" ||
		strings.HasPrefix(name, "holdfast") || strings.HasSuffix(name, ReadOnlySuffix) || strings.HasSuffix(name, ReplicationSuffix) {
		return Invalid(field, "%q is reserved; choose another", name)
	}
	return nil
}

// ReplicationSuffix ends the name of the role that may replicate.
const ReplicationSuffix = "_replication"

// ReplicationUser returns the name of the role that may stream the changes of owner's
// database, within PostgreSQL's 63 bytes.
func ReplicationUser(owner string) string {
	return withSuffix(owner, ReplicationSuffix)
}

// ReadOnlyUser returns the name of owner's read-only role, within PostgreSQL's 63
// bytes.
func ReadOnlyUser(owner string) string {
	return withSuffix(owner, ReadOnlySuffix)
}

// withSuffix returns a name and a suffix, of the name as much as PostgreSQL's 63 bytes allow.
func withSuffix(name, suffix string) string { return name[:min(len(name), 63-len(suffix))] + suffix }

// ValidateSetting checks the name of a PostgreSQL setting that the operator sets
// for one database. The settings that define an instance are reserved for the
// appliance.
func ValidateSetting(name string) error {
	if !regexp.MustCompile(`^[a-z_][a-z0-9_.]{0,62}$`).MatchString(name) {
		return Invalid("setting", "%q is not the name of a PostgreSQL setting", name)
	}
	reserved := regexp.MustCompile(`^(port|listen_addresses|unix_socket_.*|ssl.*|hba_file|ident_file|data_directory|config_file|` +
		`external_pid_file|fsync|full_page_writes|wal_level|archive_.*|restore_command|recovery_.*|primary_.*|` +
		`max_wal_senders|max_replication_slots|.*_slot_.*|synchronous_standby_names|password_encryption|log_destination|logging_collector|` +
		`log_directory|log_filename|log_file_mode|log_line_prefix|log_min_messages|lc_messages|(superuser_)?reserved_connections|` +
		`shared_preload_libraries|local_preload_libraries|session_preload_libraries|` +
		`dynamic_library_path|include.*|allow_system_table_mods|zero_damaged_pages|ignore_checksum_failure|krb_.*|cluster_name)$`)
	if reserved.MatchString(name) {
		return Invalid("setting", "%s is the appliance's own and cannot be set", name)
	}
	return nil
}

package model

import (
	"net/netip"
	"regexp"
	"strings"
	"time"
)

// DatabaseStatus is where a database is in its life.
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

// Database is a managed database: one PostgreSQL instance of its own.
type Database struct {
	ID           string         `json:"id"`
	Organization string         `json:"organization"`
	Project      string         `json:"project"`
	Name         string         `json:"name"`
	Status       DatabaseStatus `json:"status"`
	StatusReason string         `json:"status_reason"`
	Version      string         `json:"version"` // of the server, such as "15.18"
	Major        int            `json:"major"`
	Port         int            `json:"port"`

	Owner            string `json:"owner"`              // role that owns the database
	OwnerPassword    []byte `json:"owner_password"`     // sealed
	ReadOnly         string `json:"read_only"`          // role that can only read
	ReadOnlyPassword []byte `json:"read_only_password"` // sealed
	// OwnPassword is set while the owner's role has a password that was given to
	// it by SQL, and OwnerPassword is not its password.
	OwnPassword *OwnPassword `json:"own_password,omitempty"`

	Allowlist          []netip.Prefix `json:"allowlist"`
	AllowlistUpdatedAt time.Time      `json:"allowlist_updated_at"`
	AllowlistAppliedAt time.Time      `json:"allowlist_applied_at"` // when it came into force

	// Sandbox says that the database is thrown away when whoever asked for it
	// is gone: it has no backups, and does not wait for the disk.
	Sandbox bool `json:"sandbox,omitempty"`

	// Settings are the operator's, over those fitted to the machine.
	Settings map[string]string `json:"settings"`

	// Generation numbers the instance's data directory; a restore builds the
	// next one beside it and moves the record on.
	Generation int `json:"generation"`
	// Served says which generations have served the database since when, in
	// order; before the first it was generation 1.
	Served []Served `json:"served"`
	// Begun is the last generation that was begun to be built.
	Begun int `json:"begun"`
	// Replaced is the generation the last restore replaced, kept so that the
	// restore can be undone.
	Replaced *Replaced `json:"replaced"`
	// Rebuild says that the database was moved here with its backups alone, and
	// its data directory is still to be made of the newest.
	Rebuild bool `json:"rebuild,omitempty"`
	// PendingChange is a change of this record that the instance may not have
	// applied yet, nil when there is none.
	PendingChange *PendingChange `json:"unfinished,omitempty"`
	// Operation is the id of the running operation, "" when there is none.
	Operation string `json:"operation"`
	// LastRestore is the id of the operation that last began to replace the
	// data, "" when none ever did.
	LastRestore string    `json:"last_restore,omitempty"`
	CreatedAt   time.Time `json:"created_at"`
	UpdatedAt   time.Time `json:"updated_at"`
	// Trash is set while the database lies in the trash.
	Trash *Trash `json:"trash"`
}

// OwnPassword is a password that the owner's role was given by SQL. The
// appliance does not know it, and keeps it in force until it is rotated.
type OwnPassword struct {
	Verifier  []byte    `json:"verifier"` // sealed: what pg_authid has
	NoticedAt time.Time `json:"noticed_at"`
}

// PendingChange is what a start needs to finish a change after a crash.
type PendingChange struct {
	Entry AuditEntry `json:"entry"` // that the change leaves, if it ends well
	Once  string     `json:"once"`  // Call.Once
	// Settings are those before, for if the instance does not start with the
	// new ones.
	Settings map[string]string `json:"settings"`
	// Terminate says that a rotation of the passwords ends the open sessions.
	Terminate bool `json:"terminate,omitempty"`
}

// Served is a generation that began to serve.
type Served struct {
	Generation int       `json:"generation"`
	Since      time.Time `json:"since"`
	// Undrained says that the end of the WAL of the one before may not have
	// been archived.
	Undrained bool `json:"undrained"`
	// Timeline and LSN are where the generation's WAL goes on from then; 0 and ""
	// where that was not recorded.
	Timeline int    `json:"timeline,omitempty"`
	LSN      string `json:"lsn,omitempty"`
}

// LastGeneration returns the highest generation there ever was, also of those
// that were never switched to: a number is used once.
func (d Database) LastGeneration() int { return max(d.Generation, d.Begun) }

// Replaced is a data directory that a restore put aside.
type Replaced struct {
	Generation int       `json:"generation"`
	At         time.Time `json:"at"`
	ExpiresAt  time.Time `json:"expires_at"`
}

// Trash says since when and until when a deleted database can come back.
type Trash struct {
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
}

// OperationType says what a database operation does.
type OperationType string

// The kinds of database operation.
const (
	OperationBackup  OperationType = "backup"
	OperationRestore OperationType = "restore"
	OperationPITR    OperationType = "point_in_time_restore"
	OperationImport  OperationType = "import"
	OperationRestart OperationType = "restart"
	OperationDelete  OperationType = "delete"
)

// OperationStatus is how far a database operation is.
type OperationStatus string

// The states of a database operation; the last two are final.
const (
	OperationPending   OperationStatus = "pending"
	OperationRunning   OperationStatus = "running"
	OperationCompleted OperationStatus = "completed"
	OperationFailed    OperationStatus = "failed"
)

// DatabaseOperation is a long-running act on one database, persisted so that
// it is carried on or rolled back after a crash.
type DatabaseOperation struct {
	ID       string          `json:"id"`
	Database string          `json:"database"`
	Type     OperationType   `json:"type"`
	Status   OperationStatus `json:"status"`
	Phase    string          `json:"phase"`
	Progress int             `json:"progress"` // percent
	// TargetTime or TargetLSN is the point a restore was asked for, if not the
	// end of a backup.
	TargetTime *time.Time `json:"target_time"`
	TargetLSN  string     `json:"target_lsn"`
	Backup     string     `json:"backup"`
	// NewDatabase is the database the operation makes, "" for none.
	NewDatabase string `json:"new_database"`
	// Generation is the data directory the operation builds, 0 for none.
	Generation  int        `json:"generation"`
	Error       string     `json:"error"`
	StartedAt   time.Time  `json:"started_at"`
	CompletedAt *time.Time `json:"completed_at"`
}

// The patterns of names, which the API's description shows. Some that match are
// reserved.
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

// DefaultOwner is the owner's role where the client names none.
const DefaultOwner = "app"

// ReadOnlySuffix ends the name of the role that can only read.
const ReadOnlySuffix = "_readonly"

// ValidateDatabaseUser checks the name of the owner's role.
func ValidateDatabaseUser(field, name string) error {
	if !databaseUser.MatchString(name) {
		return Invalid(field, "must begin with a lower-case letter or underscore and have at most 63 lower-case letters, digits and underscores")
	}
	if strings.HasPrefix(name, "pg_") || name == "postgres" || name == "public" || name == "none" ||
		strings.HasPrefix(name, "holdfast") || strings.HasSuffix(name, ReadOnlySuffix) {
		return Invalid(field, "%q is reserved; choose another", name)
	}
	return nil
}

// ReadOnlyUser returns the name of the read-only role beside owner, within
// PostgreSQL's 63 bytes.
func ReadOnlyUser(owner string) string {
	return owner[:min(len(owner), 63-len(ReadOnlySuffix))] + ReadOnlySuffix
}

// ValidateSetting checks the name of a PostgreSQL setting that the operator
// gives one database. Those that make an instance what it is are the
// appliance's.
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

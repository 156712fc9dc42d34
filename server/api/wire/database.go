package wire

import "time"

// Database is a database's record.
type Database struct {
	ID                string         `json:"id"`
	Project           string         `json:"project" doc:"Id of its project."`
	Name              string         `json:"name"`
	Status            DatabaseStatus `json:"status"`
	StatusReason      *string        `json:"status_reason" doc:"Why it is not available."`
	Version           *string        `json:"version" doc:"Of PostgreSQL." example:"17.6"`
	Host              string         `json:"host"`
	Port              int            `json:"port"`
	DatabaseName      string         `json:"database_name"`
	DBUser            string         `json:"db_user" doc:"The role that owns it."`
	SizeBytes         *int64         `json:"size_bytes" doc:"null until it was first measured."`
	ActiveConnections *int           `json:"active_connections" doc:"null until they were first counted."`
	SSLMode           SSLMode        `json:"ssl_mode"`
	CreatedAt         time.Time      `json:"created_at"`
	UpdatedAt         time.Time      `json:"updated_at"`
	LatestBackupAt    *time.Time     `json:"latest_backup_at" doc:"When the newest backup was completed."`
	Operation         *Operation     `json:"operation" doc:"What is being done to it now."`

	Parent     *string    `json:"parent" doc:"Id of the database of which it is a branch; null if it is none."`
	BranchedAt *time.Time `json:"branched_at" doc:"Of a branch: the moment of its parent whose data it began with."`
	ExpiresAt  *time.Time `json:"expires_at" doc:"Of a branch: when it is deleted; null for never."`

	BackupEverySeconds  *int64             `json:"backup_every_seconds" doc:"The time between its scheduled backups; null for the appliance's."`
	BackupRetentionDays *float64           `json:"backup_retention_days" doc:"How long its backups are kept; null for as long as the appliance keeps them."`
	ConnectionLimit     *int               `json:"connection_limit" doc:"How many sessions its owner may have at a time; null for as many as the server has."`
	MaintenanceWindow   *MaintenanceWindow `json:"maintenance_window" doc:"When its scheduled backups begin, and when it is restarted for a newer minor version of PostgreSQL; null for backups at any time and no such restart."`
	LogicalReplication  bool               `json:"logical_replication" doc:"Whether clients may stream its changes: see getDatabaseReplication."`
	SleepAfterSeconds   *int64             `json:"sleep_after_seconds" doc:"After how long without connections its server stops, until somebody connects; null for a server that always runs."`
	Asleep              bool               `json:"asleep" doc:"Whether it sleeps: it is available, and its server starts when somebody connects."`
	SettingsLeftOut     []string           `json:"settings_left_out" doc:"Its settings that PostgreSQL of its present major version does not know. They are left out until an undo or an upgrade brings a version that does."`
}

// MaintenanceWindow is a time of the day or week.
type MaintenanceWindow struct {
	Day     WindowDay `json:"day"`
	Start   string    `json:"start" minLength:"5" maxLength:"5" pattern:"^([01][0-9]|2[0-3]):[0-5][0-9]$" patternDescription:"a time of the day such as 03:00" example:"03:00" doc:"When it opens, in UTC."`
	Minutes int       `json:"minutes" minimum:"30" maximum:"1440" doc:"How long it is open."`
}

// WindowDay is the day on which a maintenance window opens.
type WindowDay string

const (
	EveryDay  WindowDay = "every_day"
	Monday    WindowDay = "monday"
	Tuesday   WindowDay = "tuesday"
	Wednesday WindowDay = "wednesday"
	Thursday  WindowDay = "thursday"
	Friday    WindowDay = "friday"
	Saturday  WindowDay = "saturday"
	Sunday    WindowDay = "sunday"
)

// UpdateDatabase is a request to change a database. What is left out stays unchanged.
type UpdateDatabase struct {
	Name                *string                       `json:"name,omitzero" required:"false" doc:"Also the name in PostgreSQL: a new one ends the open sessions, and clients need the new connection_url. Needs an available database."`
	Project             *string                       `json:"project,omitzero" required:"false" minLength:"1" maxLength:"64" doc:"Id of the project to move it to."`
	BackupEverySeconds  Resettable[WholeNumber]       `json:"backup_every_seconds,omitzero" required:"false" minimum:"900" maximum:"2678400" doc:"The time between its scheduled backups; null for the appliance's."`
	BackupRetentionDays Resettable[WholeNumber]       `json:"backup_retention_days,omitzero" required:"false" minimum:"1" maximum:"3650" doc:"How long its backups are kept; null for as long as the appliance keeps them. A shorter time deletes backups: the key must also hold the scope backup:delete, and its dangerous-operations toggle must be on."`
	ConnectionLimit     Resettable[WholeNumber]       `json:"connection_limit,omitzero" required:"false" minimum:"1" maximum:"262143" doc:"How many sessions its owner may have at a time, of those that the server has; the read-only user may have two fifths of that, besides. null for all. Each takes about 2.5 MB of memory while idle. Open sessions stay. Needs an available database."`
	ExpiresAt           Resettable[time.Time]         `json:"expires_at,omitzero" required:"false" doc:"When the branch is deleted: at least a minute from now; null for never. Only branches expire. An earlier time deletes the branch: the key must also hold the scope database:delete, and its dangerous-operations toggle must be on."`
	MaintenanceWindow   Resettable[MaintenanceWindow] `json:"maintenance_window,omitzero" required:"false" doc:"When its scheduled backups begin, with the verification and the export that follow, and when it is restarted for a newer minor version of PostgreSQL, which ends its sessions; null for backups at any time and no such restart."`
	LogicalReplication  *bool                         `json:"logical_replication,omitzero" required:"false" doc:"Whether clients may stream its changes. A change restarts the server, which ends the open sessions, so it is not sent together with other properties. Each time it is switched on, the user who may replicate gets a new password. Needs an available database."`
	DropSlots           *bool                         `json:"drop_slots,omitzero" required:"false" doc:"Whether switching logical_replication off drops the replication slots; their clients would have to copy everything again. Without it the request is refused while there are slots."`
	SleepAfterSeconds   Resettable[WholeNumber]       `json:"sleep_after_seconds,omitzero" required:"false" minimum:"10" maximum:"604800" doc:"After how long without connections its server stops, until somebody connects; null for a server that always runs. Turning this on or off restarts the server, which ends its sessions. Not together with name or connection_limit."`
}

// Operation is a long-running operation on a database.
type Operation struct {
	ID              string          `json:"id"`
	DatabaseID      string          `json:"database_id"`
	Type            OperationType   `json:"type"`
	Status          OperationStatus `json:"status"`
	Phase           *string         `json:"phase"`
	ProgressPercent int             `json:"progress_percent" minimum:"0" maximum:"100"`
	TargetTime      *time.Time      `json:"target_time" doc:"Asked for."`
	TargetLSN       *string         `json:"target_lsn" doc:"Asked for."`
	BackupID        *string         `json:"backup_id"`
	NewDatabaseID   *string         `json:"new_database_id" doc:"Of the branch, or of the database that a restore with mode new makes."`
	Upgrade         *Upgrade        `json:"upgrade" doc:"Of an upgrade or its dry run: what it does and has found; else null."`
	Error           *string         `json:"error"`
	CancelledBy     *Actor          `json:"cancelled_by" doc:"Who cancelled it. One that was about to end is completed nevertheless."`
	StartedAt       time.Time       `json:"started_at"`
	CompletedAt     *time.Time      `json:"completed_at"`
}

// CreateDatabase is a request to create a database.
type CreateDatabase struct {
	Project            string       `json:"project" maxLength:"64" doc:"Id of the project."`
	Name               string       `json:"name" doc:"Begins with a letter; at most 63 letters, digits, underscores and hyphens. Unique in its project."`
	DBUser             *string      `json:"db_user,omitzero" required:"false" minLength:"1" doc:"The role that will own it; app when left out."`
	Password           *string      `json:"password,omitzero" required:"false" minLength:"12" maxLength:"128" format:"password" doc:"Printable characters, and not easy to guess; generated when left out."`
	Version            *string      `json:"version,omitzero" required:"false" pattern:"^[1-9][0-9]{1,2}$" patternDescription:"a major version such as 16" doc:"The major version of PostgreSQL, one of GET /versions; the default one when left out." example:"16"`
	LogicalReplication *bool        `json:"logical_replication,omitzero" required:"false" doc:"Whether clients may stream its changes; false when left out. It takes a second longer."`
	SleepAfterSeconds  *WholeNumber `json:"sleep_after_seconds,omitzero" required:"false" minimum:"10" maximum:"604800" doc:"After how long without connections its server stops, until somebody connects; it always runs when left out."`
}

// Recoverable says until when a deleted resource can be recovered.
type Recoverable struct {
	RecoverableUntil *time.Time `json:"recoverable_until" doc:"Until when it can be brought back from the trash; null when it is gone for good."`
}

// DeletedResource is the result of deleting a database or bucket.
type DeletedResource struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
	Recoverable
}

// RotatePassword is a request to rotate a database's password.
type RotatePassword struct {
	TerminateSessions *bool `json:"terminate_sessions,omitzero" required:"false" doc:"Whether to end the open sessions; false when left out."`
}

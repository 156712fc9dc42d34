package wire

import "time"

// Import is the record of an import.
type Import struct {
	ID                        string              `json:"id"`
	DatabaseID                string              `json:"database_id" doc:"Of the new database. It is gone when the import has failed."`
	Project                   string              `json:"project"`
	Name                      string              `json:"name" doc:"Of the new database."`
	Source                    ImportSource        `json:"source"`
	Mode                      ImportMode          `json:"mode"`
	Status                    ImportStatus        `json:"status"`
	Phase                     string              `json:"phase" doc:"What is being done, for people."`
	ProgressPercent           int                 `json:"progress_percent" minimum:"0" maximum:"100"`
	EstimatedSecondsRemaining *int64              `json:"estimated_seconds_remaining" doc:"For copying, from how it went so far; null while too little is done to say."`
	Tables                    ImportTables        `json:"tables"`
	RowsCopied                int64               `json:"rows_copied"`
	BytesCopied               int64               `json:"bytes_copied" doc:"Of rows, as the source sent them."`
	MissingExtensions         []string            `json:"missing_extensions" doc:"Extensions of the source that are not available here."`
	RolesLeftOut              []ImportRole        `json:"roles_left_out" doc:"Roles of the source that hold privileges there. Roles are not copied, and neither are these privileges: POST /databases/{databaseId}/roles makes roles here."`
	Errors                    []ImportFlaw        `json:"errors" doc:"What is not in the new database as it is in the source."`
	StartedAt                 time.Time           `json:"started_at"`
	CompletedAt               *time.Time          `json:"completed_at"`
	Error                     *string             `json:"error" doc:"Why it has failed, and what to do."`
	Following                 *ImportSubscription `json:"following" doc:"How the new database follows its source; null with mode copy."`
}

// ImportSubscription is how a new database follows the source of its import.
type ImportSubscription struct {
	Publication   string      `json:"publication" doc:"Of the source."`
	Slot          string      `json:"slot" doc:"The replication slot at the source, which keeps write-ahead log for the new database until the import ends."`
	LagBytes      *int64      `json:"lag_bytes" doc:"How much of the source's write-ahead log the new database has not confirmed; null while that is not known."`
	LagSeconds    *float64    `json:"lag_seconds" doc:"How long ago the source was where the new database is; null while that is not known."`
	RetainedBytes *int64      `json:"retained_bytes" doc:"How much write-ahead log the slot keeps at the source; null while that is not known."`
	MeasuredAt    *time.Time  `json:"measured_at" doc:"When the lag was measured."`
	NotFollowed   []string    `json:"not_followed" doc:"What does not follow, for people."`
	StaleViews    []StaleView `json:"stale_views" doc:"The materialized views that keep earlier rows, or none, because filling them fails; empty after the import, whose errors then name them."`
	Trouble       *string     `json:"trouble" doc:"Why it does not follow now, and what to do; null if all is well."`
	PauseSeconds  *float64    `json:"pause_seconds" doc:"How long nobody could write during the cutover: from the request until the new database accepted clients; null before."`
}

// StaleView is a materialized view of a database that follows, which could not be filled.
type StaleView struct {
	Name    string    `json:"name" doc:"With its schema."`
	Since   time.Time `json:"since" doc:"When filling it first failed: its rows are older."`
	Message string    `json:"message" doc:"Why filling it failed the last time."`
}

// ImportDetail is an import with its log.
type ImportDetail struct {
	Import
	Log []ImportLine `json:"log"`
}

// ImportSource is the server that an import copies from.
type ImportSource struct {
	Host          string  `json:"host"`
	Port          int     `json:"port"`
	Database      string  `json:"database"`
	User          string  `json:"user"`
	ServerVersion *string `json:"server_version" doc:"null until the source has answered."`
}

// ImportTables counts the tables to copy and those already copied.
type ImportTables struct {
	Total int `json:"total"`
	Done  int `json:"done"`
}

// ImportRole is a role of the source that is not here.
type ImportRole struct {
	Name   string `json:"name"`
	Grants int    `json:"grants" doc:"How many GRANT and REVOKE statements for it were left out."`
}

// ImportFlaw is an object that was not copied as it is in the source.
type ImportFlaw struct {
	Object   string  `json:"object" example:"INDEX public.orders_by_day"`
	SQLState *string `json:"sqlstate" doc:"null where no server has refused anything."`
	Message  string  `json:"message"`
}

// ImportLine is a line of an import's log.
type ImportLine struct {
	At      time.Time   `json:"at"`
	Level   ImportLevel `json:"level"`
	Message string      `json:"message"`
}

// CreateImport is a request to import a database.
type CreateImport struct {
	Project         string      `json:"project" maxLength:"64" doc:"Id of the project."`
	Name            string      `json:"name" maxLength:"63" doc:"Of the new database."`
	SourceURL       string      `json:"source_url" minLength:"1" maxLength:"4096" format:"password" doc:"postgresql://user:password@host:port/database of the database to copy, over TCP, with special characters as %XX. Of parameters it may have sslmode, channel_binding and options."`
	Mode            *ImportMode `json:"mode,omitzero" required:"false" doc:"copy when left out. With follow the new database applies the source's changes after the copy, until POST /imports/{importId}/cutover; it needs PostgreSQL 16 or newer here, and 10 or newer with wal_level logical there."`
	Publication     *string     `json:"publication,omitzero" required:"false" minLength:"1" maxLength:"63" doc:"With mode follow: the publication of the source that has its tables, as CREATE PUBLICATION name FOR ALL TABLES makes one."`
	Version         *string     `json:"version,omitzero" required:"false" pattern:"^[1-9][0-9]{1,2}$" patternDescription:"a major version such as 16" doc:"The major version of PostgreSQL, one of GET /versions; when left out the default one, or with the mode follow the newest that can follow if that one cannot." example:"16"`
	SameCredentials *bool       `json:"same_credentials,omitzero" required:"false" doc:"Whether the new database gets the user and password of the source."`
	Username        *string     `json:"username,omitzero" required:"false" minLength:"1" maxLength:"63" doc:"The role that will own it; app when left out."`
	Password        *string     `json:"password,omitzero" required:"false" minLength:"12" maxLength:"128" format:"password" doc:"Printable characters, and not easy to guess; generated when left out."`
}

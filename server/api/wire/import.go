package wire

import "time"

// Import is the record of an import.
type Import struct {
	ID                        string       `json:"id"`
	DatabaseID                string       `json:"database_id" doc:"Of the new database. It is gone when the import has failed."`
	Project                   string       `json:"project"`
	Name                      string       `json:"name" doc:"Of the new database."`
	Source                    ImportSource `json:"source"`
	Status                    ImportStatus `json:"status"`
	Phase                     string       `json:"phase" doc:"What is being done, for people."`
	ProgressPercent           int          `json:"progress_percent" minimum:"0" maximum:"100"`
	EstimatedSecondsRemaining *int64       `json:"estimated_seconds_remaining" doc:"For copying, from how it went so far; null while too little is done to say."`
	Tables                    ImportTables `json:"tables"`
	RowsCopied                int64        `json:"rows_copied"`
	BytesCopied               int64        `json:"bytes_copied" doc:"Of rows, as the source sent them."`
	MissingExtensions         []string     `json:"missing_extensions" doc:"Extensions of the source that are not available here."`
	Errors                    []ImportFlaw `json:"errors" doc:"What is not in the new database as it is in the source."`
	StartedAt                 time.Time    `json:"started_at"`
	CompletedAt               *time.Time   `json:"completed_at"`
	Error                     *string      `json:"error" doc:"Why it has failed, and what to do."`
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
	Project         string  `json:"project" maxLength:"64" doc:"Id of the project."`
	Name            string  `json:"name" maxLength:"63" doc:"Of the new database."`
	SourceURL       string  `json:"source_url" minLength:"1" maxLength:"4096" format:"password" doc:"postgresql://user:password@host:port/database of the database to copy, over TCP, with special characters as %XX. Of parameters it may have sslmode, channel_binding and options."`
	SameCredentials *bool   `json:"same_credentials,omitzero" required:"false" doc:"Whether the new database gets the user and password of the source."`
	Username        *string `json:"username,omitzero" required:"false" minLength:"1" maxLength:"63" doc:"The role that will own it; app when left out."`
	Password        *string `json:"password,omitzero" required:"false" minLength:"12" maxLength:"128" format:"password" doc:"Printable characters, and not easy to guess; generated when left out."`
}

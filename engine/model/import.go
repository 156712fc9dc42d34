package model

import "time"

// ImportStatus is the state of an import.
type ImportStatus string

// The states of an import, in order; the last three are final.
const (
	ImportPending             ImportStatus = "pending"
	ImportChecking            ImportStatus = "checking"
	ImportCopying             ImportStatus = "copying"
	ImportVerifying           ImportStatus = "verifying"
	ImportFollowing           ImportStatus = "following"    // the source's changes arrive; only with ImportFollow
	ImportCuttingOver         ImportStatus = "cutting_over" // the same, and it ends with the last of them
	ImportCompleted           ImportStatus = "completed"
	ImportCompletedWithErrors ImportStatus = "completed_with_errors"
	ImportFailed              ImportStatus = "failed"
)

// Final reports whether s is a final state.
func (s ImportStatus) Final() bool {
	return s == ImportCompleted || s == ImportCompletedWithErrors || s == ImportFailed
}

// Import is the copy of an external PostgreSQL database into a new one here. It
// does not include the source's password.
type Import struct {
	ID           string `json:"id"`
	Organization string `json:"organization"`
	Project      string `json:"project"`
	Database     string `json:"database"` // id of the new one
	Name         string `json:"name"`     // of the new one

	Source      ImportSource `json:"source"`
	Status      ImportStatus `json:"status"`
	Phase       string       `json:"phase"`
	Progress    int          `json:"progress"` // percent
	TablesTotal int          `json:"tables_total"`
	TablesDone  int          `json:"tables_done"`
	RowsCopied  int64        `json:"rows_copied"`
	BytesCopied int64        `json:"bytes_copied"`
	SecondsLeft *int64       `json:"-"` // an estimate, nil while none would be reliable
	MissingExts []string     `json:"missing_extensions"`
	// Roles are those of the source whose privileges were not copied.
	Roles        []ImportRole `json:"roles,omitempty"`
	Errors       []ImportFlaw `json:"errors"`
	ErrorsBeyond int          `json:"errors_beyond"` // number of errors that were not kept
	Log          []ImportLine `json:"log"`
	Error        string       `json:"error"` // why it failed, and what to do
	// Follow is set if the new database follows the source after the copy, until a cutover.
	Follow *ImportFollow `json:"follow,omitempty"`

	StartedAt   time.Time  `json:"started_at"`
	CompletedAt *time.Time `json:"completed_at"`
}

// ImportSource is the database that an import copies.
type ImportSource struct {
	Host     string `json:"host"`
	Port     int    `json:"port"`
	Database string `json:"database"`
	User     string `json:"user"`
	Version  string `json:"version"` // of PostgreSQL, "" until it is known
}

// ImportRole is a role of the source, which does not exist in the new database.
type ImportRole struct {
	Name   string `json:"name"`
	Grants int    `json:"grants"` // number of GRANT and REVOKE statements that were left out
}

// ImportFlaw is a difference between the new database and the source.
type ImportFlaw struct {
	Object   string `json:"object"`   // such as "INDEX public.orders_by_day"
	SQLState string `json:"sqlstate"` // "" if no server reported an error
	Message  string `json:"message"`
}

// The levels of an import's log.
const (
	ImportInfo    = "info"
	ImportWarning = "warning"
	ImportError   = "error"
)

// ImportLine is a line of an import's log.
type ImportLine struct {
	At      time.Time `json:"at"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
}

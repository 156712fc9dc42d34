package client

import (
	"context"
	"iter"
	"time"
)

// ImportCompletedWithErrors is the status of an import that has brought over
// what it could; StatusCompleted and StatusFailed are its other ends.
const ImportCompletedWithErrors = "completed_with_errors"

// Import is the record of an import.
type Import struct {
	ID                        string       `json:"id"`
	DatabaseID                string       `json:"database_id"`
	Project                   string       `json:"project"`
	Name                      string       `json:"name"` // of the new database
	Source                    ImportSource `json:"source"`
	Status                    string       `json:"status"`
	Phase                     string       `json:"phase"`
	ProgressPercent           int          `json:"progress_percent"`
	EstimatedSecondsRemaining *int64       `json:"estimated_seconds_remaining"`
	Tables                    ImportTables `json:"tables"`
	RowsCopied                int64        `json:"rows_copied"`
	BytesCopied               int64        `json:"bytes_copied"`
	MissingExtensions         []string     `json:"missing_extensions"`
	Errors                    []ImportFlaw `json:"errors"`
	StartedAt                 time.Time    `json:"started_at"`
	CompletedAt               *time.Time   `json:"completed_at"`
	Error                     *string      `json:"error"`
}

// ImportDetail is an import with its log.
type ImportDetail struct {
	Import
	Log []ImportLine `json:"log"`
}

// ImportSource is where an import comes from.
type ImportSource struct {
	Host          string  `json:"host"`
	Port          int     `json:"port"`
	Database      string  `json:"database"`
	User          string  `json:"user"`
	ServerVersion *string `json:"server_version"`
}

// ImportTables is how many tables there are to copy, and how many are copied.
type ImportTables struct {
	Total int `json:"total"`
	Done  int `json:"done"`
}

// ImportFlaw is an object that did not come over as it is.
type ImportFlaw struct {
	Object   string  `json:"object"`
	SQLState *string `json:"sqlstate"`
	Message  string  `json:"message"`
}

// ImportLine is a line of an import's log.
type ImportLine struct {
	At      time.Time `json:"at"`
	Level   string    `json:"level"`
	Message string    `json:"message"`
}

// CreateImport is where a database is imported from. SourceURL holds the
// source's password.
type CreateImport struct {
	Project         string `json:"project"` // id
	Name            string `json:"name"`
	SourceURL       string `json:"source_url"`
	SameCredentials bool   `json:"same_credentials,omitempty"`
	Username        string `json:"username,omitempty"`
	Password        string `json:"password,omitempty"`
}

// Ended reports whether nothing more will happen.
func (i Import) Ended() bool {
	return i.Status == StatusCompleted || i.Status == StatusFailed || i.Status == ImportCompletedWithErrors
}

// ListImports returns a page of the imports.
func (c *Client) ListImports(ctx context.Context, o ListOptions) (Page[Import], error) {
	return list[Import](ctx, c, "/imports", o.query())
}

// Imports walks all imports.
func (c *Client) Imports(ctx context.Context) iter.Seq2[Import, error] {
	return All(ctx, c.ListImports)
}

// CreateImport begins an import.
func (c *Client) CreateImport(ctx context.Context, in CreateImport) (ImportDetail, error) {
	return one[ImportDetail](ctx, c, "POST", "/imports", in)
}

// GetImport returns an import with its log.
func (c *Client) GetImport(ctx context.Context, id string) (ImportDetail, error) {
	return one[ImportDetail](ctx, c, "GET", path("imports", id), nil)
}

// AwaitImport waits for an import to end, and tells seen how far it is.
func (c *Client) AwaitImport(ctx context.Context, id string, seen func(ImportDetail)) (ImportDetail, error) {
	return await(ctx,
		func(ctx context.Context) (ImportDetail, error) { return c.GetImport(ctx, id) },
		func(i ImportDetail) bool { return i.Ended() }, seen)
}

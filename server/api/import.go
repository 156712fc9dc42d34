package api

import (
	"fmt"
	"time"

	"holdfast/engine/model"
)

// Import is the record of an import.
type Import struct {
	ID                string             `json:"id"`
	DatabaseID        string             `json:"database_id" doc:"Of the new database. It is gone when the import has failed."`
	Project           string             `json:"project"`
	Name              string             `json:"name" doc:"Of the new database."`
	Source            ImportSource       `json:"source"`
	Status            model.ImportStatus `json:"status"`
	Phase             string             `json:"phase" doc:"What is being done, for people."`
	ProgressPercent   int                `json:"progress_percent" minimum:"0" maximum:"100"`
	SecondsLeft       *int64             `json:"estimated_seconds_remaining" doc:"For copying, from how it went so far; null while too little is done to say."`
	Tables            ImportTables       `json:"tables"`
	RowsCopied        int64              `json:"rows_copied"`
	BytesCopied       int64              `json:"bytes_copied" doc:"Of rows, as the source sent them."`
	MissingExtensions []string           `json:"missing_extensions" doc:"Extensions of the source that are not available here."`
	Errors            []ImportFlaw       `json:"errors" doc:"What is not in the new database as it is in the source."`
	StartedAt         time.Time          `json:"started_at"`
	CompletedAt       *time.Time         `json:"completed_at"`
	Error             *string            `json:"error" doc:"Why it has failed, and what to do."`
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
	ServerVersion *string `json:"server_version" doc:"null until the source has answered."`
}

// ImportTables is how many tables there are to copy, and how many are copied.
type ImportTables struct {
	Total int `json:"total"`
	Done  int `json:"done"`
}

// ImportFlaw is an object that did not come over as it is.
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

// NewImport returns the wire form of an import, without its log.
func NewImport(i model.Import) Import {
	view := Import{
		ID: i.ID, DatabaseID: i.Database, Project: i.Project, Name: i.Name,
		Source: ImportSource{
			Host: i.Source.Host, Port: i.Source.Port, Database: i.Source.Database, User: i.Source.User,
			ServerVersion: orAbsent(i.Source.Version),
		},
		Status: i.Status, Phase: i.Phase, ProgressPercent: i.Progress, SecondsLeft: i.SecondsLeft,
		Tables: ImportTables{Total: i.TablesTotal, Done: i.TablesDone}, RowsCopied: i.RowsCopied, BytesCopied: i.BytesCopied,
		MissingExtensions: append([]string{}, i.MissingExts...), Errors: convert(i.Errors, newImportFlaw),
		StartedAt: utc(i.StartedAt), CompletedAt: utcOrAbsent(i.CompletedAt), Error: orAbsent(i.Error),
	}
	if i.ErrorsBeyond > 0 {
		view.Errors = append(view.Errors, ImportFlaw{Object: "others", Message: fmt.Sprintf("%d more are not listed", i.ErrorsBeyond)})
	}
	return view
}

// NewImportDetail returns the wire form of an import with its log.
func NewImportDetail(i model.Import) ImportDetail {
	return ImportDetail{Import: NewImport(i), Log: convert(i.Log, newImportLine)}
}

func newImportFlaw(f model.ImportFlaw) ImportFlaw {
	return ImportFlaw{Object: f.Object, SQLState: orAbsent(f.SQLState), Message: f.Message}
}

func newImportLine(l model.ImportLine) ImportLine {
	return ImportLine{At: utc(l.At), Level: ImportLevel(l.Level), Message: l.Message}
}

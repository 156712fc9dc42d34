package api

import (
	"time"

	"holdfast/engine/connstring"
	"holdfast/engine/databases"
	"holdfast/engine/model"
)

// Database is a database's record.
type Database struct {
	ID                string               `json:"id"`
	Project           string               `json:"project" doc:"Id of its project."`
	Name              string               `json:"name"`
	Status            model.DatabaseStatus `json:"status"`
	StatusReason      *string              `json:"status_reason" doc:"Why it is not available."`
	Version           *string              `json:"version" doc:"Of PostgreSQL." example:"17.6"`
	Host              string               `json:"host"`
	Port              int                  `json:"port"`
	DatabaseName      string               `json:"database_name"`
	DBUser            string               `json:"db_user" doc:"The role that owns it."`
	SizeBytes         *int64               `json:"size_bytes" doc:"null until it was first measured."`
	ActiveConnections *int                 `json:"active_connections" doc:"null until they were first counted."`
	SSLMode           connstring.SSLMode   `json:"ssl_mode"`
	CreatedAt         time.Time            `json:"created_at"`
	UpdatedAt         time.Time            `json:"updated_at"`
	LatestBackupAt    *time.Time           `json:"latest_backup_at" doc:"When the newest backup was completed."`
	Operation         *Operation           `json:"operation" doc:"What is being done to it now."`
}

// NewDatabase returns the wire form of a database.
func NewDatabase(db databases.View) Database {
	d := Database{
		ID: db.ID, Project: db.Project, Name: db.Name,
		Status: db.Status, StatusReason: orAbsent(db.StatusReason), Version: orAbsent(db.Version),
		Host: db.Host, Port: db.Port, DatabaseName: db.Name, DBUser: db.Owner, SSLMode: db.ConnectionMode,
		CreatedAt: utc(db.CreatedAt), UpdatedAt: utc(db.UpdatedAt),
	}
	if db.Statistics != nil {
		d.SizeBytes, d.ActiveConnections = &db.Statistics.SizeBytes, &db.Statistics.Connections
	}
	if db.LatestBackup != nil {
		d.LatestBackupAt = utcOrAbsent(db.LatestBackup.CompletedAt)
	}
	if db.RunningOp != nil {
		op := NewOperation(*db.RunningOp)
		d.Operation = &op
	}
	return d
}

// Operation is something long that is done to a database.
type Operation struct {
	ID              string                `json:"id"`
	DatabaseID      string                `json:"database_id"`
	Type            model.OperationType   `json:"type"`
	Status          model.OperationStatus `json:"status"`
	Phase           *string               `json:"phase"`
	ProgressPercent int                   `json:"progress_percent" minimum:"0" maximum:"100"`
	TargetTime      *time.Time            `json:"target_time" doc:"Asked for."`
	TargetLSN       *string               `json:"target_lsn" doc:"Asked for."`
	BackupID        *string               `json:"backup_id"`
	NewDatabaseID   *string               `json:"new_database_id" doc:"Of the database a restore with mode new makes."`
	Error           *string               `json:"error"`
	StartedAt       time.Time             `json:"started_at"`
	CompletedAt     *time.Time            `json:"completed_at"`
}

// NewOperation returns the wire form of an operation.
func NewOperation(op model.DatabaseOperation) Operation {
	return Operation{
		ID: op.ID, DatabaseID: op.Database, Type: op.Type, Status: op.Status,
		Phase: orAbsent(op.Phase), ProgressPercent: op.Progress,
		TargetTime: utcOrAbsent(op.TargetTime), TargetLSN: orAbsent(op.TargetLSN), BackupID: orAbsent(op.Backup), NewDatabaseID: orAbsent(op.NewDatabase), Error: orAbsent(op.Error),
		StartedAt: utc(op.StartedAt), CompletedAt: utcOrAbsent(op.CompletedAt),
	}
}

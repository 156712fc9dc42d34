package api

import (
	"holdfast/engine/databases"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewDatabase returns the wire form of a database.
func NewDatabase(db databases.View) wire.Database {
	d := wire.Database{
		ID: db.ID, Project: db.Project, Name: db.Name,
		Status: wire.DatabaseStatus(db.Status), StatusReason: orAbsent(db.StatusReason), Version: orAbsent(db.Version),
		Host: db.Host, Port: db.Port, DatabaseName: db.Name, DBUser: db.Owner, SSLMode: wire.SSLMode(db.ConnectionMode),
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

// NewOperation returns the wire form of an operation.
func NewOperation(op model.DatabaseOperation) wire.Operation {
	return wire.Operation{
		ID: op.ID, DatabaseID: op.Database, Type: wire.OperationType(op.Type), Status: wire.OperationStatus(op.Status),
		Phase: orAbsent(op.Phase), ProgressPercent: op.Progress,
		TargetTime: utcOrAbsent(op.TargetTime), TargetLSN: orAbsent(op.TargetLSN), BackupID: orAbsent(op.Backup), NewDatabaseID: orAbsent(op.NewDatabase), Error: orAbsent(op.Error),
		StartedAt: utc(op.StartedAt), CompletedAt: utcOrAbsent(op.CompletedAt),
	}
}

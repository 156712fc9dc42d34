package api

import (
	"holdfast/engine/databases"
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
	d.Parent, d.BranchedAt, d.ExpiresAt = orAbsent(db.Parent), utcOrAbsent(db.BranchedAt), utcOrAbsent(db.ExpiresAt)
	d.BackupEverySeconds = orAbsent(int64(db.BackupEvery.Seconds()))
	d.BackupRetentionDays = orAbsent(db.BackupRetention.Hours() / 24)
	d.ConnectionLimit = orAbsent(db.ConnectionLimit)
	d.LogicalReplication = db.LogicalReplication
	d.SleepAfterSeconds, d.Asleep = orAbsent(int64(db.SleepAfter.Seconds())), db.Asleep
	d.SettingsLeftOut = append([]string{}, db.LeftOut...)
	if w := db.MaintenanceWindow; !w.IsZero() {
		d.MaintenanceWindow = &wire.MaintenanceWindow{Day: wire.WindowDay(w.Day), Start: w.StartTime(), Minutes: w.Minutes}
	}
	if db.RunningOp != nil {
		op := NewOperation(*db.RunningOp)
		d.Operation = &op
	}
	return d
}

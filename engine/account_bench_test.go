package engine

import (
	"fmt"
	"testing"

	"holdfast/engine/databases"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// BenchmarkAgentStatus requests the status of an account with 50 databases, each with 30 backups and 10 findings.
func BenchmarkAgentStatus(b *testing.B) {
	a := openEngine(b, testConfig(b, b.TempDir()))
	if err := a.Core.Meta.Update(func(tx *meta.Tx) error { return a.fillAccount(tx, 50, 30) }); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		status, err := a.Insight.AgentStatus(a.call(model.ActionAgentStatus))
		if err != nil || len(status.Databases) != 50 || len(status.Recommendations) < 500 {
			b.Fatal(len(status.Databases), len(status.Recommendations), err)
		}
	}
}

// fillAccount creates records of databases, backups and findings.
func (a *appliance) fillAccount(tx *meta.Tx, dbs, backups int) error {
	now := a.Core.Clock()
	for i := range dbs {
		db := model.Database{
			ID: a.Core.NewID(model.ResourceDatabase), Organization: a.org, Project: a.project, Name: fmt.Sprintf("db%d", i),
			Status: model.DatabaseAvailable, Port: 1000 + i, CreatedAt: now, UpdatedAt: now,
		}
		if err := tx.Databases().Insert(db); err != nil {
			return err
		}
		for range backups {
			if err := tx.Backups().Insert(model.Backup{
				ID: a.Core.NewID(model.ResourceBackup), Organization: a.org, Database: db.ID, Status: model.BackupCompleted,
				StoredBytes: 1 << 20, StartedAt: now, CompletedAt: &now,
			}); err != nil {
				return err
			}
		}
		found := make([]model.Recommendation, 10)
		for n := range found {
			found[n] = model.Recommendation{Code: "missing_index", Severity: model.SeverityWarning, Resource: databases.DatabaseResource(db), Object: fmt.Sprint(n)}
		}
		a.Insight.SetFindings(db.ID, map[string][]model.Recommendation{"missing_indexes": found})
	}
	return nil
}

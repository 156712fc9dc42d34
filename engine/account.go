package engine

import (
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// Usage is what an organization takes, and what the machine has left.
type Usage struct {
	model.Totals
	DatabaseBytes int64 // as the databases last said
	BackupBytes   int64 // on disk, see backupBytes
	Connections   int64
	Plan          string                 // in force
	Limits        map[model.Metric]int64 // of that plan
	Host          Host
}

// Used returns how much of a metric is in use.
func (u Usage) Used(m model.Metric) int64 {
	switch m {
	case model.MetricDatabaseBytes:
		return u.DatabaseBytes
	case model.MetricBackupBytes:
		return u.BackupBytes
	default:
		return u.Totals.Of(m)
	}
}

// Usage returns what the call's organization takes: its totals, what its
// databases last said of themselves, and what its backups occupy on disk.
func (e *Engine) Usage(call *model.Call) (Usage, error) {
	databases, err := e.databasesOf(call.Organization)
	if err != nil {
		return Usage{}, err
	}
	return e.usage(call, databases)
}

func (e *Engine) usage(call *model.Call, databases []model.Database) (Usage, error) {
	account, err := e.AccountGet(call)
	if err != nil {
		return Usage{}, err
	}
	usage := Usage{Totals: account.Totals, Plan: account.Plan.Name, Limits: account.Plan.Limits}
	usage.DatabaseBytes, usage.Connections = e.sampled(databases)
	if usage.BackupBytes, err = e.backupBytes(call.Organization); err != nil {
		return usage, err
	}
	usage.Host, err = measureHost(e.cfg.DataDir)
	return usage, err
}

// databasesOf returns every database of an organization, newest first.
func (e *Engine) databasesOf(organization string) (databases []model.Database, err error) {
	err = e.meta.View(func(tx *meta.Tx) (err error) {
		databases, err = allDatabases(tx, organization)
		return err
	})
	return databases, err
}

func allDatabases(tx *meta.Tx, organization string) ([]model.Database, error) {
	return allBy(tx.Databases(), meta.ByOrganization, meta.Key(organization))
}

// sampled adds up what databases last said of themselves.
func (e *Engine) sampled(databases []model.Database) (bytes, connections int64) {
	for _, db := range databases {
		stats, _ := e.stats.get(db.ID)
		bytes += stats.SizeBytes
		connections += int64(stats.Connections)
	}
	return bytes, connections
}

// Rates returns the budgets each key has.
func (e *Engine) Rates() map[model.RateClass]Rate { return e.cfg.Rates }

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/engine/insight"
)

// databaseFigure is a figure of each database, with labels that lead to it.
type databaseFigure struct {
	name, help string
	counts     bool // it is a counter
	value      func(insight.DatabaseMeasurement) (value float64, known bool)
}

func (f databaseFigure) collect(all []insight.DatabaseMeasurement, to chan<- prometheus.Metric) {
	desc := prometheus.NewDesc("holdfast_"+f.name, f.help, []string{"database", "name", "project"}, nil)
	kind := prometheus.GaugeValue
	if f.counts {
		kind = prometheus.CounterValue
	}
	for _, db := range all {
		if value, known := f.value(db); known {
			to <- prometheus.MustNewConstMetric(desc, kind, value, db.ID, db.Name, db.Project)
		}
	}
}

// databaseFigures returns the figures that GET /databases/{id}/metrics has over time, and others. The labels are the ids
// of the database and its project, and its name.
func databaseFigures() []databaseFigure {
	measured := func(value func(insight.DatabaseMeasurement) float64) func(insight.DatabaseMeasurement) (float64, bool) {
		return func(db insight.DatabaseMeasurement) (float64, bool) {
			if db.Statistics == nil {
				return 0, false
			}
			return value(db), true
		}
	}
	return []databaseFigure{
		{name: "database_up", help: "1 while the database is available.", value: func(db insight.DatabaseMeasurement) (float64, bool) {
			return float64(toNumber(db.Available)), true
		}},
		{name: "database_size_bytes", help: "Size of the database, as last measured.", value: measured(func(db insight.DatabaseMeasurement) float64 { return float64(db.Statistics.SizeBytes) })},
		{name: "database_connections", help: "Tenants' sessions in the database.", value: measured(func(db insight.DatabaseMeasurement) float64 { return float64(db.Statistics.Connections) })},
		{
			name: "database_commits_total", help: "Commits since the server's statistics began.", counts: true,
			value: measured(func(db insight.DatabaseMeasurement) float64 { return float64(db.Statistics.Commits) }),
		},
		{name: "wal_lag_bytes", help: "WAL of the database that is not archived.", value: measured(func(db insight.DatabaseMeasurement) float64 { return float64(db.Statistics.WALLag) })},
		{name: "rpo_seconds", help: "Age of the commits that would be lost with the server.", value: func(db insight.DatabaseMeasurement) (float64, bool) {
			if db.Statistics == nil || db.Statistics.RPO == nil {
				return 0, false
			}
			return db.Statistics.RPO.Seconds(), true
		}},
		{name: "replication_retained_bytes", help: "WAL that the server keeps for the replication slot that is furthest behind, 0 without one.", value: measured(func(db insight.DatabaseMeasurement) float64 {
			most := int64(0)
			for _, slot := range db.Statistics.Slots {
				most = max(most, slot.Retained)
			}
			return float64(most)
		})},
		{name: "replication_slots", help: "Replication slots of clients.", value: measured(func(db insight.DatabaseMeasurement) float64 { return float64(len(db.Statistics.Slots)) })},
		{name: "backup_age_seconds", help: "Age of the newest completed backup, 0 while the database sleeps and has not changed since.", value: func(db insight.DatabaseMeasurement) (float64, bool) {
			if db.BackupAge == nil {
				return 0, false
			}
			return db.BackupAge.Seconds(), true
		}},
	}
}

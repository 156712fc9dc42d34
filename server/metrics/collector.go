package metrics

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/engine"
	"holdfast/engine/insight"
	"holdfast/engine/model"
	"holdfast/engine/offsite"
)

// collector gets the engine's figures at every scrape.
type collector struct {
	engine *engine.Engine
	log    *slog.Logger
}

// Describe implements prometheus.Collector. It sends nothing: only the function figures knows the metrics.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	m, err := c.engine.Insight.Measure()
	if err != nil {
		c.log.Error("measure", "error", err)
		return
	}
	for _, f := range figures(m) {
		f.collect(to)
	}
	for _, f := range databaseFigures() {
		f.collect(m.Each, to)
	}
}

// figure is a gauge with one value, or one for each value of a label.
type figure struct {
	name, help string
	value      int64
	label      string
	by         map[string]int64
}

func (f figure) collect(to chan<- prometheus.Metric) {
	name := "holdfast_" + f.name
	if f.label == "" {
		to <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, f.help, nil, nil), prometheus.GaugeValue, float64(f.value))
		return
	}
	desc := prometheus.NewDesc(name, f.help, []string{f.label}, nil)
	for _, value := range slices.Sorted(maps.Keys(f.by)) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(f.by[value]), value)
	}
}

func figures(m insight.Measurement) []figure {
	return []figure{
		{name: "organizations", help: "Organizations.", value: int64(m.Organizations)},
		{name: "databases", help: "Databases by status.", label: "status", by: byStatus(m.Databases)},
		{name: "databases_asleep", help: "Databases whose server starts when somebody connects.", value: int64(m.Asleep)},
		{name: "databases_without_backup", help: "Databases that are to have a completed backup and have none.", value: int64(m.Unprotected)},
		{name: "buckets", help: "Buckets.", value: m.Totals.Buckets},
		{name: "objects", help: "Objects.", value: m.Totals.Objects},
		{
			name: "blob_bytes", help: "Bytes of stored objects, and what backups, WAL and exports occupy on disk.", label: "kind",
			by: map[string]int64{"objects": m.Totals.StorageBytes, "backups": m.BackupBytes},
		},
		{name: "audit_queue_entries", help: "Audit entries that wait to be written.", value: int64(m.AuditQueued)},
		{name: "audit_queue_capacity_entries", help: "Audit entries that may wait before requests have to.", value: int64(m.AuditRoom)},
		{name: "database_recommendations", help: "Findings of the checks of databases, by severity.", label: "severity", by: bySeverity(m.Recommendations)},
		{name: "offsite_enabled", help: "1 where everything is copied to a store elsewhere.", value: toNumber(m.Offsite.State != model.OffsiteOff)},
		{name: "offsite_fenced", help: "1 once another machine has taken over and this one is read-only.", value: toNumber(m.Offsite.State == model.OffsiteFenced)},
		{name: "offsite_lag_seconds", help: "Age of the oldest change that the copy off-site lacks.", value: int64(m.Offsite.Lag.Seconds())},
		{
			name: "offsite_stream_lag_seconds", help: "The same of each kind of data; of wal, that of the database where it is longest.",
			label: "stream", by: byStream(m.Offsite),
		},
		{name: "offsite_backlog_bytes", help: "Bytes that wait to be copied off-site, about.", value: m.Offsite.Backlog},
		{name: "offsite_verified_timestamp_seconds", help: "When the copy off-site was last read back, in seconds since 1970; 0 for never.", value: verifiedAt(m.Offsite)},
		{name: "offsite_damaged_objects", help: "Objects that could not be read then.", value: damaged(m.Offsite)},
		{name: "offsite_restored_timestamp_seconds", help: "When a database was last restored on trial from the copy off-site alone, in seconds since 1970; 0 for never.", value: restoredAt(m.Offsite)},
		{name: "offsite_restore_failed", help: "1 where that failed.", value: toNumber(m.Offsite.Restored != nil && m.Offsite.Restored.Error != "")},
		{name: "offsite_stored_bytes", help: "Bytes stored off-site since the start of the run.", value: m.Offsite.Counts.LogBytes + m.Offsite.Counts.FileBytes},
		{name: "objects_away", help: "Large objects that are in the copy off-site only.", value: m.Offsite.AwayObjects},
		{name: "objects_away_bytes", help: "Their bytes.", value: m.Offsite.AwayBytes},
		{name: "objects_local_bytes", help: "What the files of large objects and exports take of the data directory's disk.", value: m.Offsite.LocalBytes},
		{name: "objects_local_limit_bytes", help: "What they may take (--objects-local-size), 0 for no limit.", value: m.Offsite.LocalLimit},
		{name: "disk_free_bytes", help: "Free bytes of the data directory's disk.", value: m.Host.DiskFree},
		{name: "disk_size_bytes", help: "Size of the data directory's disk.", value: m.Host.DiskTotal},
	}
}

func toNumber(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func byStream(s offsite.Status) map[string]int64 {
	by := map[string]int64{}
	for _, st := range s.Streams {
		by[st.Stream] = max(by[st.Stream], int64(st.Lag.Seconds()))
	}
	return by
}

func verifiedAt(s offsite.Status) int64 {
	if s.Verified == nil {
		return 0
	}
	return s.Verified.At.Unix()
}

func restoredAt(s offsite.Status) int64 {
	if s.Restored == nil {
		return 0
	}
	return s.Restored.At.Unix()
}

func damaged(s offsite.Status) int64 {
	if s.Verified == nil {
		return 0
	}
	return int64(len(s.Verified.Damage))
}

// byStatus has every status, even without databases, so that an alert sees it return to 0.
func byStatus(counts map[model.DatabaseStatus]int) map[string]int64 {
	by := map[string]int64{}
	for _, status := range []model.DatabaseStatus{
		model.DatabaseCreating, model.DatabaseAvailable, model.DatabaseRestarting, model.DatabaseRestoring,
		model.DatabaseImporting, model.DatabaseUnavailable, model.DatabaseFailed, model.DatabaseDeleting,
	} {
		by[string(status)] = int64(counts[status])
	}
	return by
}

func bySeverity(counts map[model.Severity]int) map[string]int64 {
	by := map[string]int64{}
	for _, severity := range []model.Severity{model.SeverityCritical, model.SeverityWarning, model.SeverityInfo} {
		by[string(severity)] = int64(counts[severity])
	}
	return by
}

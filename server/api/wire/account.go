package wire

import "time"

// Metric is the amount of a resource in use, and its limit.
type Metric struct {
	Used  int64  `json:"used"`
	Limit *int64 `json:"limit" doc:"null is without limit."`
}

// Usage is what an organization uses.
type Usage struct {
	Period  Period       `json:"period"`
	Metrics UsageMetrics `json:"metrics"`
	Host    Host         `json:"host"`
}

// Period is a calendar month in UTC; End is the start of the next month.
type Period struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// UsageMetrics are the metrics of an organization.
type UsageMetrics struct {
	Databases     Metric `json:"databases"`
	DatabaseBytes Metric `json:"database_bytes"`
	Buckets       Metric `json:"buckets"`
	Objects       Metric `json:"objects"`
	StorageBytes  Metric `json:"storage_bytes"`
	BackupBytes   Metric `json:"backup_bytes" doc:"What backups, archived WAL and exports occupy on disk now, including those of databases in the trash."`
	Connections   Metric `json:"connections"`
}

// Host describes the machine; memory is null where the system does not report
// it.
type Host struct {
	DiskTotalBytes       int64  `json:"disk_total_bytes"`
	DiskFreeBytes        int64  `json:"disk_free_bytes"`
	MemoryTotalBytes     *int64 `json:"memory_total_bytes"`
	MemoryAvailableBytes *int64 `json:"memory_available_bytes"`
}

// Limits are what the organization's plan allows.
type Limits struct {
	Plan       string                   `json:"plan"`
	Limits     PlanLimits               `json:"limits"`
	Features   Features                 `json:"features"`
	RateLimits map[string]RateLimitView `json:"rate_limits" doc:"Budgets of each key."`
}

// PlanLimits limit the metrics of the same names; null means no limit.
type PlanLimits struct {
	Databases     *int64 `json:"databases"`
	DatabaseBytes *int64 `json:"database_bytes"`
	Buckets       *int64 `json:"buckets"`
	Objects       *int64 `json:"objects"`
	StorageBytes  *int64 `json:"storage_bytes"`
	BackupBytes   *int64 `json:"backup_bytes"`
	Connections   *int64 `json:"connections" doc:"Always null: each database bounds its own by max_connections."`
}

// Features says what the appliance offers on this machine, as the operator has
// configured it.
type Features struct {
	Databases           bool `json:"databases"`
	Backups             bool `json:"backups"`
	ObjectStorage       bool `json:"object_storage"`
	PointInTimeRecovery bool `json:"point_in_time_recovery"`
	ScheduledBackups    bool `json:"scheduled_backups" doc:"Whether the operator has the appliance make any."`
	BackupVerification  bool `json:"backup_verification" doc:"Whether a trial restore follows each backup: the operator has not turned that off."`
	Exports             bool `json:"exports" doc:"Whether an export follows each backup: the operator has not turned that off, and pg_dump is on this machine."`
	Imports             bool `json:"imports" doc:"Whether pg_dump is on this machine."`
	RowLevelSecurity    bool `json:"row_level_security"`
	DeviceLogin         bool `json:"device_login"`
}

// RateLimitView is a budget: a number of requests in a window of time.
type RateLimitView struct {
	Limit         int   `json:"limit"`
	WindowSeconds int64 `json:"window_seconds"`
}

// Billing is what the organization owes.
type Billing struct {
	Plan           string        `json:"plan"`
	Status         BillingStatus `json:"status"`
	Currency       *string       `json:"currency" doc:"ISO 4217; null where nothing is charged."`
	AmountDueCents int64         `json:"amount_due_cents"`
	Trial          Trial         `json:"trial"`
}

// Trial is a plan on trial.
type Trial struct {
	Active    bool       `json:"active"`
	StartedAt *time.Time `json:"started_at"`
	EndsAt    *time.Time `json:"ends_at"`
}

package model

import (
	"maps"
	"slices"
	"time"
)

// Metric names something that is counted for an organization and that a plan may
// limit.
type Metric string

// The metrics.
const (
	MetricDatabases     Metric = "databases"
	MetricDatabaseBytes Metric = "database_bytes"
	MetricBuckets       Metric = "buckets"
	MetricObjects       Metric = "objects"
	MetricStorageBytes  Metric = "storage_bytes"
	MetricBackupBytes   Metric = "backup_bytes"
)

// Metrics returns every metric a plan may limit, in display order. It omits
// connections: each database limits its own with max_connections.
func Metrics() []Metric {
	return []Metric{
		MetricDatabases, MetricDatabaseBytes, MetricBuckets, MetricObjects, MetricStorageBytes, MetricBackupBytes,
	}
}

// Totals is the sum of an organization's records.
type Totals struct {
	Databases    int64 `json:"databases"` // excluding those in the trash
	Buckets      int64 `json:"buckets"`
	Objects      int64 `json:"objects"`
	StorageBytes int64 `json:"storage_bytes"`
	Uploads      int64 `json:"uploads"`      // resumable uploads in progress
	UploadBytes  int64 `json:"upload_bytes"` // declared size of their objects
	// Events, Deliveries and Pending, of the deliveries, are bounded for every organization alike.
	Events     int64 `json:"events,omitempty"`
	Deliveries int64 `json:"deliveries,omitempty"`
	Pending    int64 `json:"pending,omitempty"`
}

// Plus returns t plus by times o; with by = -1, the difference.
func (t Totals) Plus(o Totals, by int64) Totals {
	return Totals{
		Databases: t.Databases + by*o.Databases, Buckets: t.Buckets + by*o.Buckets, Objects: t.Objects + by*o.Objects,
		StorageBytes: t.StorageBytes + by*o.StorageBytes,
		Uploads:      t.Uploads + by*o.Uploads, UploadBytes: t.UploadBytes + by*o.UploadBytes,
		Events: t.Events + by*o.Events, Deliveries: t.Deliveries + by*o.Deliveries, Pending: t.Pending + by*o.Pending,
	}
}

// Of returns the total of one metric, 0 for metrics that are not counted in
// records.
func (t Totals) Of(m Metric) int64 {
	switch m {
	case MetricDatabases:
		return t.Databases
	case MetricBuckets:
		return t.Buckets
	case MetricObjects:
		return t.Objects
	case MetricStorageBytes:
		return t.StorageBytes + t.UploadBytes
	default:
		return 0
	}
}

// PlanSelfHosted is the default plan, which has no limits.
const PlanSelfHosted = "self_hosted"

// Plan is a named set of limits. A metric missing from Limits is unlimited.
type Plan struct {
	Name   string
	Limits map[Metric]int64
}

// NewPlan validates and returns a plan from plans.<name> of the config file.
func NewPlan(name string, limits map[string]int64) (Plan, error) {
	if err := ValidateLabel("plans", name); err != nil {
		return Plan{}, err
	}
	if name == PlanSelfHosted {
		return Plan{}, Invalid("plans", "%s is the plan without limits and cannot be given any; choose another name", PlanSelfHosted)
	}
	plan := Plan{Name: name, Limits: map[Metric]int64{}}
	for _, metric := range slices.Sorted(maps.Keys(limits)) {
		if !slices.Contains(Metrics(), Metric(metric)) {
			return Plan{}, Invalid("plans."+name+"."+metric, "is not a limit; the limits are %v", Metrics())
		}
		if limits[metric] < 0 {
			return Plan{}, Invalid("plans."+name+"."+metric, "must not be negative; leave it out for no limit")
		}
		plan.Limits[Metric(metric)] = limits[metric]
	}
	return plan, nil
}

// Trial is another plan that an organization has for a limited time.
type Trial struct {
	Plan      string    `json:"plan"`
	StartedAt time.Time `json:"started_at"`
	EndsAt    time.Time `json:"ends_at"`
	// Concluded means that the end of the trial has been audited.
	Concluded bool `json:"concluded"`
}

// Active reports whether the trial is in effect at now.
func (t *Trial) Active(now time.Time) bool { return t != nil && now.Before(t.EndsAt) }

// PlanName returns the plan in effect at now: the trial's plan while the trial
// lasts.
func (o Organization) PlanName(now time.Time) string {
	switch {
	case o.Trial.Active(now):
		return o.Trial.Plan
	case o.Plan == "":
		return PlanSelfHosted
	default:
		return o.Plan
	}
}

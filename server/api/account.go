package api

import (
	"context"
	"time"

	"holdfast/engine/insight"
	"holdfast/engine/model"
	"holdfast/server/api/wire"
)

// NewUsage returns the wire form of a usage at the time now.
func NewUsage(u insight.Usage, now time.Time) wire.Usage {
	now = now.UTC()
	metric := func(m model.Metric) wire.Metric { return wire.Metric{Used: u.Used(m), Limit: limitOf(u.Limits, m)} }
	start := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	return wire.Usage{
		Period: wire.Period{Start: start, End: start.AddDate(0, 1, 0)},
		Metrics: wire.UsageMetrics{
			Databases: metric(model.MetricDatabases), DatabaseBytes: metric(model.MetricDatabaseBytes),
			Buckets: metric(model.MetricBuckets), Objects: metric(model.MetricObjects), StorageBytes: metric(model.MetricStorageBytes),
			BackupBytes: metric(model.MetricBackupBytes), Connections: wire.Metric{Used: u.Connections},
		},
		Host: wire.Host{
			DiskTotalBytes: u.Host.DiskTotal, DiskFreeBytes: u.Host.DiskFree,
			MemoryTotalBytes: u.Host.MemoryTotal, MemoryAvailableBytes: u.Host.MemoryAvailable,
		},
	}
}

func (h *handlers) usageGet(_ context.Context, call *model.Call, _ *nothingInput) (wire.Usage, error) {
	usage, err := h.engine.Insight.Usage(call)
	return NewUsage(usage, h.now()), err
}

func limitOf(limits map[model.Metric]int64, m model.Metric) *int64 {
	if limit, limited := limits[m]; limited {
		return &limit
	}
	return nil
}

func (h *handlers) limitsGet(ctx context.Context, call *model.Call, _ *nothingInput) (wire.Limits, error) {
	account, err := h.engine.Access.AccountGet(call)
	if err != nil {
		return wire.Limits{}, err
	}
	features := h.engine.Insight.Features(ctx)
	limit := func(m model.Metric) *int64 { return limitOf(account.Plan.Limits, m) }
	limits := wire.Limits{
		Plan: account.Plan.Name,
		Limits: wire.PlanLimits{
			Databases: limit(model.MetricDatabases), DatabaseBytes: limit(model.MetricDatabaseBytes),
			Buckets: limit(model.MetricBuckets), Objects: limit(model.MetricObjects), StorageBytes: limit(model.MetricStorageBytes),
			BackupBytes: limit(model.MetricBackupBytes),
		},
		Features: wire.Features{
			Databases: true, Backups: true, ObjectStorage: true, PointInTimeRecovery: true,
			ScheduledBackups: features.ScheduledBackups, BackupVerification: features.BackupVerification,
			Exports: features.Exports, Imports: features.Imports,
			RowLevelSecurity: true, DeviceLogin: true,
		},
		RateLimits: map[string]wire.RateLimitView{},
	}
	for class, rate := range h.engine.Insight.Rates() {
		limits.RateLimits[string(class)] = wire.RateLimitView{Limit: rate.Limit, WindowSeconds: int64(rate.Window.Seconds())}
	}
	return limits, nil
}

func (h *handlers) billingGet(_ context.Context, call *model.Call, _ *nothingInput) (wire.Billing, error) {
	account, err := h.engine.Access.AccountGet(call)
	if err != nil {
		return wire.Billing{}, err
	}
	billing := wire.Billing{Plan: account.Plan.Name, Status: wire.BillingActive}
	if trial := account.Organization.Trial; trial != nil {
		active := trial.Active(h.now())
		billing.Trial = wire.Trial{Active: active, StartedAt: utcOrAbsent(&trial.StartedAt), EndsAt: utcOrAbsent(&trial.EndsAt)}
		billing.Status = wire.BillingTrialEnded
		if active {
			billing.Status = wire.BillingTrial
		}
	}
	return billing, nil
}

// organization returns the resource of operations on an account as a whole.
func organization(call *model.Call) model.Resource {
	return model.Resource{Type: model.ResourceOrganization, ID: call.Organization}
}

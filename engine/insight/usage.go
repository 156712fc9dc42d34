package insight

import (
	"holdfast/engine/core"
	"holdfast/engine/model"
)

// Usage is what an organization uses, and the machine's resources.
type Usage struct {
	model.Totals
	DatabaseBytes int64 // as last sampled
	BackupBytes   int64 // on disk, see the BackupBytes of package recovery
	Connections   int64
	Plan          string                 // in effect
	Limits        map[model.Metric]int64 // of that plan
	Host          core.Host
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

// Usage returns the usage of the call's organization: its totals, the last samples
// of its databases, and the size of its backups on disk.
func (s *Service) Usage(call *model.Call) (Usage, error) {
	databases, err := s.databases.DatabasesOf(call.Organization)
	if err != nil {
		return Usage{}, err
	}
	return s.usage(call, databases)
}

func (s *Service) usage(call *model.Call, databases []model.Database) (Usage, error) {
	account, err := s.access.AccountGet(call)
	if err != nil {
		return Usage{}, err
	}
	usage := Usage{Totals: account.Totals, Plan: account.Plan.Name, Limits: account.Plan.Limits}
	usage.DatabaseBytes, usage.Connections = s.databases.SampledTotals(databases)
	if usage.BackupBytes, err = s.recovery.BackupBytes(call.Organization); err != nil {
		return usage, err
	}
	usage.Host, err = core.MeasureHost(s.core.Config.DataDir)
	return usage, err
}

// Rates returns the rate limits of each key.
func (s *Service) Rates() map[model.RateClass]core.Rate { return s.core.Config.Rates }

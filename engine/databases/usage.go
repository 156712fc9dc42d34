package databases

import (
	"holdfast/engine/core"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// DatabasesOf returns every database of an organization, newest first.
func (s *Service) DatabasesOf(organization string) ([]model.Database, error) {
	return meta.Value(s.core.Meta.View, func(tx *meta.Tx) ([]model.Database, error) { return AllDatabases(tx, organization) })
}

// AllDatabases returns every database of an organization, newest first.
func AllDatabases(tx *meta.Tx, organization string) ([]model.Database, error) {
	return core.AllBy(tx.Databases(), meta.ByOrganization, meta.Key(organization))
}

// SampledTotals adds up the last statistics of databases.
func (s *Service) SampledTotals(databases []model.Database) (bytes, connections int64) {
	for _, db := range databases {
		stats, _ := s.Statistics.Get(db.ID)
		bytes += stats.SizeBytes
		connections += int64(stats.Connections)
	}
	return bytes, connections
}

// DatabaseBytes returns the total size of databases. Each counts with its last
// statistics or, if greater, the source of its running import.
func (s *Service) DatabaseBytes(databases []model.Database) (bytes int64) {
	sizes := s.imports.Reserved()
	for _, db := range databases {
		stats, _ := s.Statistics.Get(db.ID)
		bytes += max(stats.SizeBytes, sizes[db.ID])
	}
	return bytes
}

// refuseFullDatabases refuses another database if the existing ones use up what the
// plan allows.
func (s *Service) refuseFullDatabases(tx *meta.Tx, organization string) error {
	plan, err := s.core.PlanOf(tx, organization)
	if _, limited := plan.Limits[model.MetricDatabaseBytes]; err != nil || !limited {
		return err
	}
	databases, err := AllDatabases(tx, organization)
	if err != nil {
		return err
	}
	return s.core.RefuseFull(tx, organization, model.MetricDatabaseBytes, s.DatabaseBytes(databases))
}

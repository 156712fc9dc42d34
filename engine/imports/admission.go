package imports

import (
	"holdfast/engine/core"
	"holdfast/engine/databases"
	"holdfast/engine/importer"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// admit refuses an import that does not fit on the disk or into its organization's plan in addition to what other running
// operations will need. If it accepts the import, it reserves its size.
func (s *Service) admit(db model.Database, size int64) error {
	s.admission.Lock()
	defer s.admission.Unlock()
	need := importer.NeededSpace(size)
	if err := s.core.Space.Reserve(db.ID, need, 0, func(free int64) error {
		return core.NoSpace(nil,
			"the source's database has %d MB and needs %d MB of free disk here; there are %d MB that no other operation needs: the operator must free disk space",
			size>>20, need>>20, free>>20)
	}); err != nil {
		return err
	}
	defer s.core.Space.Release(db.ID) // from now on, StillToImport counts it
	if err := s.core.Meta.View(func(tx *meta.Tx) error { return s.importWithinPlan(tx, db, size) }); err != nil {
		return err
	}
	s.sizes.Store(db.ID, size)
	return nil
}

// StillToImport returns how much more disk space the running imports may take, in bytes.
func (s *Service) StillToImport() (bytes int64) {
	for database, size := range s.Reserved() {
		stats, _ := s.databases.Statistics.Get(database)
		bytes += max(importer.NeededSpace(size)-stats.SizeBytes, 0)
	}
	return bytes
}

func (s *Service) importWithinPlan(tx *meta.Tx, db model.Database, size int64) error {
	plan, err := s.core.PlanOf(tx, db.Organization)
	if err != nil {
		return err
	}
	dbs, err := databases.AllDatabases(tx, db.Organization)
	if err != nil {
		return err
	}
	stats, _ := s.databases.Statistics.Get(db.ID)
	others := s.databases.DatabaseBytes(dbs) - stats.SizeBytes
	if limit, limited := plan.Limits[model.MetricDatabaseBytes]; limited && others+size > limit {
		return model.Errorf(model.CodeForbidden,
			"%s: the source's database has %d, the plan %s allows %d, and %d are in use or will be by imports under way; "+
				"delete what is not needed, or have the operator choose a larger plan with `holdfast admin org set-plan`",
			model.MetricDatabaseBytes, size, plan.Name, limit, others)
	}
	return nil
}

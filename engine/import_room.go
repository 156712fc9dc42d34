package engine

import (
	"holdfast/engine/importer"
	"holdfast/engine/meta"
	"holdfast/engine/model"
)

// roomForImport refuses an import that does not fit on the disk, or into what
// its organization's plan allows, beside what the other imports under way will
// have taken when they are done. From then on it counts as one of those.
func (e *Engine) roomForImport(db model.Database, size int64) error {
	e.imports.admission.Lock()
	defer e.imports.admission.Unlock()
	host, err := measureHost(e.cfg.DataDir)
	if err != nil {
		return err
	}
	need, free := importer.RoomFor(size), host.DiskFree-e.stillToImport()
	if need > free {
		return model.Errorf(model.CodeForbidden,
			"the source's database has %d MB and needs %d MB of free disk here; there are %d MB that no other import needs: the operator must make room",
			size>>20, need>>20, max(free, 0)>>20)
	}
	if err := e.meta.View(func(tx *meta.Tx) error { return e.importWithinPlan(tx, db, size) }); err != nil {
		return err
	}
	e.imports.reserve(db.ID, size)
	return nil
}

// stillToImport is how much of the disk the imports under way may still take.
func (e *Engine) stillToImport() (bytes int64) {
	for database, size := range e.imports.Reserved() {
		stats, _ := e.stats.get(database)
		bytes += max(importer.RoomFor(size)-stats.SizeBytes, 0)
	}
	return bytes
}

func (e *Engine) importWithinPlan(tx *meta.Tx, db model.Database, size int64) error {
	plan, err := e.planOf(tx, db.Organization)
	if err != nil {
		return err
	}
	databases, err := allDatabases(tx, db.Organization)
	if err != nil {
		return err
	}
	stats, _ := e.stats.get(db.ID)
	others := e.databaseBytes(databases) - stats.SizeBytes
	if limit, limited := plan.Limits[model.MetricDatabaseBytes]; limited && others+size > limit {
		return model.Errorf(model.CodeForbidden,
			"%s: the source's database has %d, the plan %s allows %d, and %d are in use or will be by imports under way; "+
				"delete what is not needed, or have the operator choose a larger plan with `holdfast admin org set-plan`",
			model.MetricDatabaseBytes, size, plan.Name, limit, others)
	}
	return nil
}

// databaseBytes is what databases last said they take, or will take when they
// are imported.
func (e *Engine) databaseBytes(databases []model.Database) (bytes int64) {
	sizes := e.running.Reserved()
	for _, db := range databases {
		stats, _ := e.stats.get(db.ID)
		bytes += max(stats.SizeBytes, sizes[db.ID])
	}
	return bytes
}
